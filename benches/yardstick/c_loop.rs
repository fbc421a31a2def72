//! The plain loop in C: built on the spot, run on the same rows.

use crate::Rows;
use crate::common::traces::rows_of;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/baseline.c");

/// Replays in one run, of which the shortest counts.
const REPEAT: &str = "3";

/// The built loop, and the file that it reads.
pub struct CLoop {
    binary: PathBuf,
    rows: PathBuf,
}

/// What one run of it says.
pub struct Said {
    /// Its shortest replay.
    pub replay: Duration,
    /// One pass over the rows.
    pub read_once: Duration,
    /// The figures it found: `mass 0.711377 recall 0.906047`.
    pub figures: String,
}

impl CLoop {
    /// Builds the loop and writes the rows without a header; says why where that cannot be done.
    pub fn build(rows: &Rows) -> Result<CLoop, String> {
        let c_loop = CLoop { binary: rows.folder.at("baseline"), rows: rows.folder.at("decode-4096.f32") };
        compile(&c_loop.binary)?;
        let weights: Vec<u8> =
            rows_of(&rows.memory).into_iter().flatten().flatten().flat_map(f32::to_le_bytes).collect();
        std::fs::write(&c_loop.rows, weights).expect("the folder can be written to");
        Ok(c_loop)
    }

    /// Replays decode-4096 at budget 512 with a recent window of 32.
    pub fn run(&self, policy: &str) -> Said {
        let mut command = Command::new(&self.binary);
        command.arg(&self.rows).args(["4096", policy, "512", "32", REPEAT]);
        let output = command.output().expect("the loop was built");
        assert!(output.status.success(), "the plain loop in C ends with {}", output.status);
        parse(&String::from_utf8_lossy(&output.stdout)).expect("the loop prints one line of figures")
    }
}

fn compile(binary: &Path) -> Result<(), String> {
    let mut gcc = Command::new("gcc");
    let built = gcc.args(["-O3", "-march=native", "-o"]).arg(binary).arg(SOURCE).output();
    match built {
        Err(error) => Err(format!("gcc does not start ({error})")),
        Ok(output) if !output.status.success() => Err("gcc cannot build it for this machine".to_owned()),
        Ok(_) => Ok(()),
    }
}

fn parse(line: &str) -> Option<Said> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |name: &str| words.iter().position(|word| *word == name).map(|at| words[at + 1]);
    let seconds = |text: &str| text.parse::<f64>().ok().map(|ms| Duration::from_secs_f64(ms / 1e3));
    let replay = words.iter().position(|word| *word == "ms").map(|at| words[at - 1])?;
    Some(Said {
        replay: seconds(replay)?,
        read_once: seconds(after("read-once")?)?,
        figures: format!("mass {} recall {}", after("mass")?, after("recall")?),
    })
}
