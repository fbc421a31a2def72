//! The plain program in C: built on the spot, run on the same queries and keys.

use crate::common::traces::Folder;
use crate::made::Head;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/qkv/qk_baseline.c");

/// The built program, and what it is run on.
pub struct CLoop {
    binary: PathBuf,
    numbers: PathBuf,
    rows: usize,
    width: usize,
}

impl CLoop {
    /// Builds the program and writes queries and keys without a header; says why where that cannot be done.
    pub fn build(folder: &Folder, head: &Head) -> Result<CLoop, String> {
        let binary = folder.at("qk_baseline");
        let mut gcc = Command::new("gcc");
        let built = gcc.args(["-O3", "-march=native", "-o"]).arg(&binary).arg(SOURCE).arg("-lm").output();
        match built {
            Err(error) => return Err(format!("gcc does not start ({error})")),
            Ok(output) if !output.status.success() => return Err("gcc cannot build it for this machine".to_owned()),
            Ok(_) => {}
        }
        let numbers = folder.at("head.f16");
        let all = head.queries.iter().chain(&head.keys);
        let bytes: Vec<u8> = all.flat_map(|number| number.to_le_bytes()).collect();
        std::fs::write(&numbers, bytes).expect("the folder can be written to");
        Ok(CLoop { binary, numbers, rows: head.rows, width: head.width })
    }

    /// What one run says that its rows took.
    pub fn rows(&self) -> Duration {
        let [rows, width] = [self.rows, self.width].map(|count| count.to_string());
        let mut command = Command::new(&self.binary);
        command.arg(&self.numbers).args([&rows, &width, "512", "32", "1"]);
        let output = command.output().expect("the program was built");
        assert!(output.status.success(), "the program in C ends with {}", output.status);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let words: Vec<&str> = text.split_whitespace().collect();
        let at = words.windows(2).position(|pair| pair[0] == "rows").expect("it says what its rows took");
        let milliseconds: f64 = words[at + 1].parse().expect("a number of milliseconds");
        Duration::from_secs_f64(milliseconds / 1e3)
    }
}
