//! What a user should know besides the results, as values: whoever runs an experiment decides where
//! they go.

use std::fmt;

/// Something that a user should know about a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remark {
    /// How much it matters.
    pub severity: Severity,
    /// Name of the trace.
    pub trace: String,
    /// What there is to know.
    pub text: String,
}

/// How much a remark matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// Something was understood or done in a way that could surprise.
    Note,
    /// Something may be wrong.
    Warning,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}: {}: {}", self.trace, self.text)
    }
}

/// Who is told.
pub type Listener<'a> = dyn FnMut(Remark) + 'a;

/// Tells the listener every text.
pub(super) fn tell(
    listener: &mut Listener<'_>,
    severity: Severity,
    trace: &str,
    texts: impl IntoIterator<Item = String>,
) {
    let remark = |text| Remark { severity, trace: trace.to_owned(), text };
    texts.into_iter().map(remark).for_each(listener);
}
