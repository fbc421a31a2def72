//! The first line of a file of decisions: what was replayed, by which lanes, on which caches.

use crate::policy::parameter::PARAMETERS;
use crate::replay::{CachePlan, LanePlan};
use crate::trace::{Head, SelfAttention, StreamLabel};
use crate::word::Word;
use serde_json::{Map, Value, json};

/// The version of the form.
pub const VERSION: u64 = 1;

/// Names of the first line that are not about a lane.
const OF_FILE: [&str; 7] = ["kvsim_decisions", "trace", "self", "seq_len", "first_position", "caches", "lanes"];

/// What a file of decisions is about.
#[derive(Clone, PartialEq, Debug)]
pub struct Header {
    /// Name of the trace.
    pub trace: String,
    /// The lanes, at least one.
    pub lanes: Vec<LaneHeader>,
    /// Whether rows held the token itself.
    pub self_attention: SelfAttention,
    /// Positions of the sequence, where it is said.
    pub seq_len: Option<usize>,
    /// The step of the first row, where it is said: positions before it were there from the start.
    pub first_position: Option<u32>,
    /// The caches, by whose index the lines go.
    pub caches: Vec<StreamLabel>,
}

/// What decided.
#[derive(Clone, PartialEq, Debug)]
pub struct LaneHeader {
    /// Name of the policy.
    pub policy: String,
    /// Most positions held, where there is a budget.
    pub budget: Option<usize>,
    /// Parameters and whatever else is said, under their own names.
    pub settings: Map<String, Value>,
}

impl Header {
    /// The first line, without its end.
    pub fn to_json(&self) -> Value {
        let mut line = Map::new();
        line.insert("kvsim_decisions".to_owned(), json!(VERSION));
        line.insert("trace".to_owned(), json!(self.trace));
        // A single lane stands in the line itself: the plainest form is the one that others write.
        match &self.lanes[..] {
            [lane] => line.extend(lane.to_map()),
            lanes => drop(line.insert("lanes".to_owned(), lanes.iter().map(LaneHeader::to_map).collect())),
        }
        line.insert("self".to_owned(), json!(self.self_attention.word()));
        self.seq_len.map(|len| line.insert("seq_len".to_owned(), json!(len)));
        self.first_position.map(|first| line.insert("first_position".to_owned(), json!(first)));
        line.insert("caches".to_owned(), self.caches.iter().map(|cache| json!(cache_of(cache))).collect());
        Value::Object(line)
    }

    /// Reads a first line.
    ///
    /// # Errors
    /// Says what is missing or wrong.
    pub fn parse(line: &Value) -> Result<Header, String> {
        if line["kvsim_decisions"] != json!(VERSION) || !line["caches"].is_array() {
            return Err(format!(
                "not decisions: the first line has no \"kvsim_decisions\": {VERSION} and no \"caches\""
            ));
        }
        let self_attention = line["self"].as_str().and_then(SelfAttention::from_word);
        let caches = line["caches"].as_array().into_iter().flatten();
        let count = |name: &str| match &line[name] {
            Value::Null => Ok(None),
            number => number.as_u64().map(|n| Some(n as usize)).ok_or(format!("{name:?} is {number}, not a count")),
        };
        Ok(Header {
            trace: line["trace"].as_str().unwrap_or_default().to_owned(),
            lanes: lanes(line)?,
            self_attention: self_attention.ok_or("\"self\" is neither \"included\" nor \"excluded\"")?,
            seq_len: count("seq_len")?,
            first_position: count("first_position")?.map(|first| first as u32),
            caches: caches.map(label).collect::<Result<_, _>>()?,
        })
    }
}

fn cache_of(label: &StreamLabel) -> Map<String, Value> {
    Map::from_iter([("layer".to_owned(), json!(label.layer)), ("head".to_owned(), json!(label.head.to_string()))])
}

fn label(cache: &Value) -> Result<StreamLabel, String> {
    let layer = cache["layer"].as_u64().and_then(|layer| u32::try_from(layer).ok());
    let head = match &cache["head"] {
        Value::String(head) if !head.is_empty() => Some(Head::parse(head)),
        Value::Number(head) => head.as_u64().map(|head| Head::parse(&head.to_string())),
        _ => None,
    };
    let label = layer.zip(head).map(|(layer, head)| StreamLabel { layer, head });
    label.ok_or_else(|| format!("cache {cache} has no \"layer\" and \"head\""))
}

fn lanes(line: &Value) -> Result<Vec<LaneHeader>, String> {
    match &line["lanes"] {
        Value::Null => Ok(vec![LaneHeader::parse(line)?]),
        Value::Array(lanes) if !lanes.is_empty() => lanes.iter().map(LaneHeader::parse).collect(),
        _ => Err("\"lanes\" is not a list of lanes".to_owned()),
    }
}

impl LaneHeader {
    /// What a lane is, with the budgets of its caches where they are not all the same.
    pub fn of(lane: &LanePlan, budgets: &[usize]) -> LaneHeader {
        let values = PARAMETERS.iter().filter_map(|parameter| Some((parameter.column, lane.values.get(parameter)?)));
        let mut settings: Map<String, Value> = values.map(|(name, value)| (name.to_owned(), number(value))).collect();
        if budgets.windows(2).any(|pair| pair[0] != pair[1]) {
            settings.insert("budgets".to_owned(), json!(budgets));
        }
        settings.extend(of_keeping(lane));
        if let Some(to) = lane.rounding {
            settings.insert("round_scores".to_owned(), json!(to.word()));
        }
        LaneHeader { policy: lane.entry.name.to_owned(), budget: lane.budget, settings }
    }

    fn parse(lane: &Value) -> Result<LaneHeader, String> {
        let policy = lane["policy"].as_str().ok_or("it has no \"policy\", the name of what decided")?;
        let budget = match &lane["budget"] {
            Value::Null => None,
            budget => Some(budget.as_u64().ok_or_else(|| format!("\"budget\" is {budget}, not a count"))? as usize),
        };
        let others = lane.as_object().into_iter().flatten();
        let others = others.filter(|(name, _)| !OF_FILE.contains(&&***name) && *name != "policy" && *name != "budget");
        let settings = others.map(|(name, value)| (name.clone(), value.clone())).collect();
        Ok(LaneHeader { policy: policy.to_owned(), budget, settings })
    }

    pub(super) fn to_map(&self) -> Map<String, Value> {
        let mut map = Map::from_iter([("policy".to_owned(), json!(self.policy))]);
        self.budget.map(|budget| map.insert("budget".to_owned(), json!(budget)));
        map.extend(self.settings.clone());
        map
    }

    /// The lane in words: `h2o, budget 64, recent_window 32`.
    pub fn in_words(&self) -> String {
        let budget = self.budget.map(|budget| format!(", budget {budget}")).unwrap_or_default();
        let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let settings = self.settings.iter().map(|(name, value)| format!(", {name} {}", plain(value)));
        format!("{}{budget}{}", self.policy, settings.collect::<String>())
    }
}

/// How a lane's caches are kept, as far as it is said.
fn of_keeping(lane: &LanePlan) -> Map<String, Value> {
    let (own, plain) = (lane.keeping, lane.entry.default_keeping());
    let all = [
        ("combine", own.combine != plain.combine, json!(own.combine.word())),
        ("scope", own.scope != plain.scope, json!(own.scope.word())),
        ("evict_every", own.evict_every != plain.evict_every, json!(own.evict_every)),
        ("page", own.page != plain.page, json!(own.page)),
        ("prompt", own.prompt.mode != plain.prompt.mode, json!(own.prompt.mode.word())),
        ("prompt_len", own.prompt.len > 0, json!(own.prompt.len)),
        ("prompt_chunk", own.prompt.chunk.is_some(), json!(own.prompt.chunk)),
    ];
    let said = all.into_iter().filter(|(_, said, _)| *said);
    said.map(|(name, _, value)| (name.to_owned(), value)).collect()
}

/// A value as a number where it is one.
fn number(value: crate::policy::parameter::Value) -> Value {
    let text = value.to_string();
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

impl Header {
    /// The header of a replay of these lanes.
    pub fn of(
        trace: &crate::trace::TraceInfo,
        caches: &[CachePlan],
        positions: usize,
        lanes: Vec<LaneHeader>,
    ) -> Header {
        let late = trace.first_position > trace.self_attention.first_step();
        Header {
            trace: trace.name.clone(),
            lanes,
            self_attention: trace.self_attention,
            seq_len: Some(positions),
            first_position: late.then_some(trace.first_position.0),
            caches: caches.iter().map(|cache| cache.label.clone()).collect(),
        }
    }
}
