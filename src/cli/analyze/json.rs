//! The analysis as JSON: what was analysed, and every figure as the library holds it.

use kvsim::analyze::Analysis;
use kvsim::trace::TraceInfo;
use kvsim::word::Word;
use serde_json::{Value, json};

pub fn json(info: &TraceInfo, analysis: &Analysis) -> String {
    let mut report = json!({
        "trace": info.name,
        "self": info.self_attention.word(),
        "positions": info.positions,
    });
    let figures = serde_json::to_value(analysis).expect("figures have no maps with other keys than text");
    if let (Value::Object(report), Value::Object(figures)) = (&mut report, figures) {
        report.extend(figures);
    }
    format!("{report:#}\n")
}
