//! The few Python literals that an npy header is made of. Reads text; evaluates nothing.

use std::iter::Peekable;
use std::str::Chars;

/// A literal.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Literal {
    Text(String),
    Flag(bool),
    Number(usize),
    /// A tuple or a list.
    Sequence(Vec<Literal>),
    /// A dictionary, in the order written.
    Pairs(Vec<(String, Literal)>),
}

/// Sequences within sequences beyond this are refused: headers need two.
const MAX_DEPTH: usize = 8;

/// Reads the text as one literal and nothing after it.
pub(super) fn parse(text: &str) -> Option<Literal> {
    let mut parser = Parser { rest: text.chars().peekable(), depth: 0 };
    let literal = parser.literal()?;
    parser.skip_space();
    parser.rest.next().is_none().then_some(literal)
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    depth: usize,
}

impl Parser<'_> {
    fn literal(&mut self) -> Option<Literal> {
        self.skip_space();
        match self.rest.peek()? {
            '\'' | '"' => self.text().map(Literal::Text),
            '(' => self.nested(|parser| parser.sequence(')')),
            '[' => self.nested(|parser| parser.sequence(']')),
            '{' => self.nested(Parser::pairs),
            'T' | 'F' => self.flag(),
            _ => self.number(),
        }
    }

    fn nested(&mut self, inner: impl FnOnce(&mut Self) -> Option<Literal>) -> Option<Literal> {
        self.depth += 1;
        self.rest.next();
        let literal = if self.depth <= MAX_DEPTH { inner(self) } else { None };
        self.depth -= 1;
        literal
    }

    fn sequence(&mut self, end: char) -> Option<Literal> {
        let mut items = Vec::new();
        while !self.took(end) {
            items.push(self.literal()?);
            self.separator(end)?;
        }
        Some(Literal::Sequence(items))
    }

    fn pairs(&mut self) -> Option<Literal> {
        let mut pairs = Vec::new();
        while !self.took('}') {
            let key = self.text()?;
            self.took(':').then_some(())?;
            pairs.push((key, self.literal()?));
            self.separator('}')?;
        }
        Some(Literal::Pairs(pairs))
    }

    /// A comma, or the end that stands in its place.
    fn separator(&mut self, end: char) -> Option<()> {
        let at_end = self.took(',') || self.rest.peek() == Some(&end);
        at_end.then_some(())
    }

    /// Type descriptions and keys hold no escapes.
    fn text(&mut self) -> Option<String> {
        let quote = self.rest.next_if(|letter| matches!(letter, '\'' | '"'))?;
        let mut text = String::new();
        loop {
            match self.rest.next()? {
                '\\' => return None,
                letter if letter == quote => return Some(text),
                letter => text.push(letter),
            }
        }
    }

    fn flag(&mut self) -> Option<Literal> {
        match self.word(|letter| letter.is_ascii_alphabetic()).as_str() {
            "True" => Some(Literal::Flag(true)),
            "False" => Some(Literal::Flag(false)),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<Literal> {
        let digits = self.word(|letter| letter.is_ascii_digit());
        // Python 2 wrote long integers so.
        self.rest.next_if_eq(&'L');
        digits.parse().ok().map(Literal::Number)
    }

    fn word(&mut self, belongs: impl Fn(&char) -> bool) -> String {
        std::iter::from_fn(|| self.rest.next_if(&belongs)).collect()
    }

    fn took(&mut self, letter: char) -> bool {
        self.skip_space();
        let took = self.rest.next_if_eq(&letter).is_some();
        if took {
            self.skip_space();
        }
        took
    }

    fn skip_space(&mut self) {
        while self.rest.next_if(|letter| letter.is_ascii_whitespace()).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_numpy_writes_it() {
        let header = parse("{'descr': '<f2', 'fortran_order': False, 'shape': (9, 512, 512), }   \n").expect("sound");
        let shape = [9, 512, 512].map(Literal::Number).to_vec();
        let pairs = [
            ("descr", Literal::Text("<f2".to_owned())),
            ("fortran_order", Literal::Flag(false)),
            ("shape", Literal::Sequence(shape)),
        ];
        assert_eq!(header, Literal::Pairs(pairs.map(|(key, value)| (key.to_owned(), value)).to_vec()));
    }

    #[test]
    fn short_tuples_and_fields_are_read() {
        assert_eq!(parse("()"), Some(Literal::Sequence(Vec::new())));
        assert_eq!(parse("(3L,)"), Some(Literal::Sequence(vec![Literal::Number(3)])));
        assert!(parse("[('a', '<f4'), (\"b\", '<f4', (2,))]").is_some());
    }

    #[test]
    fn anything_else_is_refused() {
        let deep = "(".repeat(100_000);
        let huge = "9".repeat(40);
        for text in ["", "{", "{'a'}", "(1 2)", "'a", "'a\\'", "(1,)x", "nan", "-1", "Truer", "{1: 2}", &deep, &huge] {
            assert_eq!(parse(text), None, "{:.20}", text);
        }
    }
}
