//! `kvsim memory`: the bytes of a KV cache, from numbers or from a model's configuration.

use super::output::{Output, read_input};
use anyhow::Result;
use clap::{Args, ValueEnum};
use kvsim::error::Error;
use kvsim::memory::config::{self, MOST, MOST_LAYERS};
use kvsim::memory::count::{Storage, batch};
use kvsim::memory::size::{Amount, Unit, common_unit};
use kvsim::memory::{LayerCache, ModelCaches};
use kvsim::policy::share::Share;
use kvsim::report::text_table::TextTable;
use serde_json::{Map, Value};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Say how many bytes a KV cache takes, and how many sequences fit
///
/// From a model's config.json or from numbers: keys and values of every KV head and layer, for each
/// position of each sequence. With a budget or fewer bits, also how many times smaller that is.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvsim memory config.json --length 32768 --batch 8\n  \
    kvsim memory --layers 96 --kv-heads 96 --head-dim 128 --length 2048 --batch 128\n  \
    kvsim memory --layers 96 --kv-heads 96 --head-dim 128 --length 2048 --devices 8 --device-memory 80 --weights 325\n  \
    kvsim memory config.json --length 2048 --budget 20% --bits 4 --bit-group 64")]
pub struct MemoryArgs {
    /// A model's config.json, or - for standard input
    #[arg(value_name = "CONFIG", conflicts_with_all = ["layers", "kv_heads", "head_dim"], required_unless_present = "layers")]
    config: Option<PathBuf>,

    /// Layers with a KV cache
    #[arg(long, value_name = "N", requires = "kv_heads", requires = "head_dim", value_parser = up_to(MOST_LAYERS))]
    layers: Option<u64>,

    /// KV heads of a layer (all its heads, where each has its own keys and values)
    #[arg(long, value_name = "N", value_parser = up_to(MOST_LAYERS))]
    kv_heads: Option<u64>,

    /// Numbers in a key and in a value
    #[arg(long, value_name = "N", value_parser = up_to(MOST_LAYERS))]
    head_dim: Option<u64>,

    /// Positions of a sequence
    #[arg(long, value_name = "N", value_parser = up_to(MOST))]
    length: u64,

    /// Sequences at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = up_to(MOST))]
    batch: u64,

    /// Positions that each cache holds at most: a count, or a share of the length such as 20%
    #[arg(long, value_name = "N|SHARE", value_parser = Budget::parse)]
    budget: Option<Budget>,

    /// Bits of a number while a budget or fewer bits are compared with the model's own [default: the model's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    bits: Option<u32>,

    /// Numbers that share a scale and a zero of 16 bits each; only with fewer than 16 bits
    #[arg(long, value_name = "N", value_parser = up_to(MOST_LAYERS), requires = "bits")]
    bit_group: Option<u64>,

    /// Bits of a number in the model's own cache [default: as config.json says, else 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    model_bits: Option<u32>,

    /// Devices that share the cache
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = up_to(MOST_LAYERS), requires = "device_memory")]
    devices: u64,

    /// Memory of a device, in --unit or with GiB or GB behind it
    #[arg(long, value_name = "AMOUNT", value_parser = Amount::parse)]
    device_memory: Option<Amount>,

    /// Memory that the weights take on all devices together
    #[arg(long, value_name = "AMOUNT", value_parser = Amount::parse, requires = "device_memory")]
    weights: Option<Amount>,

    /// What amounts are read and printed in: gib is 2^30 bytes, gb is 10^9 [default: as typed, else gib]
    #[arg(long, value_enum)]
    unit: Option<UnitName>,

    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum UnitName {
    Gib,
    Gb,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    /// Aligned lines for people
    Text,
    /// One object, exact numbers of bytes
    Json,
}

#[derive(Clone, Copy, Debug)]
enum Budget {
    Count(u64),
    Share(Share),
}

impl Budget {
    fn parse(text: &str) -> Result<Budget, String> {
        if text.ends_with('%') {
            return Share::parse(text).map(Budget::Share);
        }
        let count = text.parse().ok().filter(|count| *count > 0);
        count
            .map(Budget::Count)
            .ok_or_else(|| "write a number of positions (512) or a share of the length (20%)".into())
    }

    fn of(self, length: u64) -> u64 {
        match self {
            Budget::Count(count) => count,
            Budget::Share(share) => share.of(length as usize) as u64,
        }
    }
}

fn up_to(most: u64) -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=most)
}

/// A line of the answer.
struct Answer {
    key: &'static str,
    what: &'static str,
    value: Value,
    shown: String,
    how: String,
}

impl MemoryArgs {
    pub fn run(&self) -> Result<ExitCode> {
        let mut output = Output::open(None)?;
        let caches = self.caches()?;
        let answers = self.answers(&caches)?;
        super::notes::note(false, &self.name(), &caches.notes);
        let text = match self.format {
            Format::Text => as_text(&answers),
            Format::Json => as_json(&answers),
        };
        output.write_all(text.as_bytes())?;
        output.finish()?;
        Ok(ExitCode::SUCCESS)
    }

    fn name(&self) -> String {
        self.config.as_ref().map_or(String::new(), |path| path.display().to_string())
    }

    fn caches(&self) -> Result<ModelCaches> {
        if let Some(path) = &self.config {
            return Ok(config::read(&read_input(path)?).map_err(|problem| Error::data(self.name(), problem))?);
        }
        let numbers = (self.layers, self.kv_heads, self.head_dim);
        let (Some(layers), Some(kv_heads), Some(head_dim)) = numbers else {
            return Err(Error::usage("name a config.json, or --layers, --kv-heads and --head-dim").into());
        };
        let layer = Some(LayerCache::of_heads(kv_heads, head_dim));
        Ok(ModelCaches { layers: vec![layer; layers as usize], ..ModelCaches::default() })
    }

    fn unit(&self) -> Result<Unit, Error> {
        let amounts: Vec<Amount> = self.device_memory.into_iter().chain(self.weights).collect();
        let typed = common_unit(&amounts).map_err(Error::Usage)?;
        let asked = self.unit.map(|unit| if unit == UnitName::Gib { Unit::GiB } else { Unit::GB });
        match (asked, typed) {
            (Some(asked), Some(typed)) if asked != typed => {
                Err(Error::usage(format!("--unit {} and amounts in {}: write both in one", asked.word(), typed.word())))
            }
            _ => Ok(asked.or(typed).unwrap_or_default()),
        }
    }

    /// How the compared cache stores numbers.
    fn storage(&self, own: Storage) -> Result<Storage, Error> {
        let bits = self.bits.unwrap_or(own.bits);
        if self.bit_group.is_some() && bits >= 16 {
            return Err(Error::usage(format!("--bit-group: numbers of {bits} bits share no scale: name fewer --bits")));
        }
        Ok(Storage { bits, group: self.bit_group })
    }

    fn answers(&self, caches: &ModelCaches) -> Result<Vec<Answer>, Error> {
        let own = Storage::plain(self.model_bits.or(caches.bits).unwrap_or(16));
        let held = self.storage(own)?;
        let budget = self.budget.map(|budget| budget.of(self.length));
        let counted = Counted {
            unit: self.unit()?,
            own,
            held,
            budget,
            whole: caches.sequence_bytes(self.length, None, own),
            kept: caches.sequence_bytes(self.length, budget, held),
        };
        let mut answers = self.of_the_model(&counted, caches);
        if counted.is_compared() {
            answers.extend(self.of_the_kept(&counted));
        }
        answers.extend(self.batches(&counted));
        Ok(answers)
    }

    fn of_the_model(&self, counted: &Counted, caches: &ModelCaches) -> Vec<Answer> {
        let own = counted.own;
        let layers = caches.layers.iter().flatten();
        let widest = u128::from(layers.clone().map(|layer| layer.position_bytes(own)).max().unwrap_or(0));
        let layers = format!("{} layers, {} bits", layers.count(), own.bits);
        let positions = format!("{} positions", self.length);
        let batch = format!("a batch of {}", self.batch);
        let all = counted.whole * u128::from(self.batch);
        vec![
            counted.amount(
                "layer_position_bytes",
                "a position in a layer",
                widest,
                "keys and values of all its KV heads",
            ),
            counted.amount("position_bytes", "a position", caches.position_bytes(own), &layers),
            counted.amount("sequence_bytes", "a sequence", counted.whole, &positions),
            counted.amount("cache_bytes", "the cache", all, &batch),
        ]
    }

    fn of_the_kept(&self, counted: &Counted) -> Vec<Answer> {
        let (positions, bits) = (self.length, counted.held.bits);
        let how = match counted.budget {
            Some(budget) => format!("at most {} of {positions} positions, {bits} bits", budget.min(positions)),
            None => format!("{positions} positions, {bits} bits"),
        };
        let all = counted.kept * u128::from(self.batch);
        vec![
            counted.amount("kept_sequence_bytes", "a sequence, kept", counted.kept, &how),
            counted.amount("kept_cache_bytes", "the cache, kept", all, &scales(counted.held)),
            counted.times_smaller(),
        ]
    }

    /// How many sequences fit, where the memory was named.
    fn batches(&self, counted: &Counted) -> Vec<Answer> {
        let Some(memory) = self.device_memory else { return Vec::new() };
        let unit = counted.unit;
        let total = memory.bytes(unit) * u128::from(self.devices);
        let weights = self.weights.map_or(0, |weights| weights.bytes(unit));
        let how = format!("{} less {} of weights", shown(total, unit), shown(weights, unit));
        let fits = |key, what: &'static str, sequence| {
            let batch = batch(total, weights, sequence);
            Answer { key, what, value: whole_number(batch), shown: batch.to_string(), how: how.clone() }
        };
        let mut answers = vec![fits("batch", "sequences that fit", counted.whole)];
        answers.extend(counted.is_compared().then(|| fits("kept_batch", "sequences that fit, kept", counted.kept)));
        answers
    }
}

/// What the answers are made of.
struct Counted {
    unit: Unit,
    /// How the model stores numbers.
    own: Storage,
    /// How the compared cache does.
    held: Storage,
    budget: Option<u64>,
    /// Bytes of a whole sequence as the model stores it.
    whole: u128,
    /// Bytes of what is kept of it.
    kept: u128,
}

impl Counted {
    fn is_compared(&self) -> bool {
        self.budget.is_some() || self.held != self.own
    }

    fn amount(&self, key: &'static str, what: &'static str, bytes: u128, how: &str) -> Answer {
        Answer { key, what, value: whole_number(bytes), shown: shown(bytes, self.unit), how: how.to_owned() }
    }

    fn times_smaller(&self) -> Answer {
        let times = if self.kept == 0 { 0.0 } else { self.whole as f64 / self.kept as f64 };
        Answer {
            key: "times_smaller",
            what: "times smaller",
            value: Value::from(times),
            shown: format!("{times:.1}"),
            how: "the model's own cache over what is kept".to_owned(),
        }
    }
}

/// As JSON; beyond 64 bits the nearest float.
fn whole_number(number: u128) -> Value {
    u64::try_from(number).map_or(Value::from(number as f64), Value::from)
}

fn scales(held: Storage) -> String {
    held.group.map_or(String::new(), |group| format!("with a scale and a zero of 16 bits for every {group} numbers"))
}

/// Whole bytes below a hundredth of the unit, else the unit.
fn shown(bytes: u128, unit: Unit) -> String {
    if bytes < unit.bytes() / 100 {
        return format!("{bytes} bytes");
    }
    let number = format!("{:.3}", unit.of(bytes));
    format!("{} {}", number.trim_end_matches('0').trim_end_matches('.'), unit.word())
}

fn as_text(answers: &[Answer]) -> String {
    let rows: Vec<Vec<String>> =
        answers.iter().map(|answer| vec![answer.what.to_owned(), answer.shown.clone(), answer.how.clone()]).collect();
    let header = ["what", "how much", "of"].map(str::to_owned).to_vec();
    TextTable { header, rows, right: vec![false, true, false] }.aligned()
}

fn as_json(answers: &[Answer]) -> String {
    let object: Map<String, Value> =
        answers.iter().map(|answer| (answer.key.to_owned(), answer.value.clone())).collect();
    format!("{}\n", Value::Object(object))
}
