//! Deciding over a pipe: rows of a trace, told one at a time, have the same positions leave as in its replay.

use crate::common::binary::{command, kvsim_reading};
use crate::common::lanes::lane;
use crate::rows;
use kvsim::decisions::{Decisions, Evictions, Header, LaneHeader, Recorder};
use kvsim::replay::{LanePlan, Options, replay, shared_caches_of};
use kvsim::trace::memory::{MemoryTrace, Rows};
use kvsim::trace::{SelfAttention, Source};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

const STEPS: usize = 50;
const WINDOW: usize = 30;

/// Two layers of four query heads over two KV heads; the second layer slides.
struct Case {
    kind: SelfAttention,
    rows: Vec<Rows>,
}

impl Case {
    fn new(kind: SelfAttention) -> Case {
        let slide = |stream: usize, (at, row): (usize, Option<Vec<f32>>)| {
            let step = at + kind.first_step().index();
            let first = if stream < 4 { 0 } else { (step + 1).saturating_sub(WINDOW) };
            row.map(|row| row.iter().enumerate().map(|(at, weight)| if at < first { 0.0 } else { *weight }).collect())
        };
        let stream = |stream: usize| {
            let rows = rows(stream as u32 + 1, STEPS).into_iter().enumerate();
            rows.map(|row| slide(stream, row)).collect()
        };
        Case { kind, rows: (0..8).map(stream).collect() }
    }

    fn trace(&self) -> MemoryTrace {
        let trace = MemoryTrace::new("made by a test", self.kind);
        let trace = self.rows.iter().enumerate().fold(trace, |trace, (at, rows)| {
            trace.with_stream(at as u32 / 4, &(at % 4).to_string(), rows.clone()).expect("sound rows")
        });
        trace.with_metadata("sliding_window.1", &WINDOW.to_string())
    }

    /// What leaves each cache, step by step, as a replay has it.
    fn replayed(&self, lane: &LanePlan) -> Vec<Vec<(u32, u32)>> {
        let trace = self.trace();
        let caches = shared_caches_of(trace.info(), 2).expect("two KV heads");
        let header = Header::of(trace.info(), &caches, trace.info().positions, vec![LaneHeader::of(lane, &[])]);
        let recorder = Recorder::new(Vec::new(), &header, &[STEPS; 4]).expect("memory takes all");
        replay(&trace, &caches, std::slice::from_ref(lane), &Options::default(), &recorder).expect("a sound replay");
        let text = recorder.finish().expect("memory takes all");
        let file = Decisions::read_from("it", &text[..]).expect("sound");
        let numbers = |left: &Evictions| left.iter().map(|(position, step)| (position.0, step.0)).collect();
        file.left[0].iter().map(numbers).collect()
    }

    /// What leaves each cache when the program is told of the rows, restricted to what it still holds.
    fn told(&self, args: &[&str]) -> Vec<Vec<(u32, u32)>> {
        let mut program = Program::start(&[&["decide"], args].concat());
        let cache = |at: usize| {
            let window = if at < 2 { String::new() } else { format!(",\"window\":{WINDOW}") };
            format!("{{\"layer\":{},\"head\":\"kv{}\",\"query_heads\":2{window}}}", at / 2, at % 2)
        };
        let caches: Vec<String> = (0..4).map(cache).collect();
        let kind = if self.kind == SelfAttention::Included { "included" } else { "excluded" };
        program.say(&format!("{{\"kvsim_decide\":1,\"self\":\"{kind}\",\"caches\":[{}]}}\n", caches.join(",")));
        assert!(program.hear_line().starts_with("{\"kvsim_decide\":1,\"policy\":"));
        let first = self.kind.first_step().0;
        let mut held: Vec<Vec<u32>> = vec![(0..first).collect(); 4];
        let mut left = vec![Vec::new(); 4];
        for step in first..first + STEPS as u32 {
            for cache in 0..4 {
                let held = &mut held[cache];
                let included = self.kind == SelfAttention::Included;
                held.extend(included.then_some(step));
                let rows =
                    [0, 1].map(|head| self.rows[cache * 2 + head][(step - first) as usize].as_ref().expect("known"));
                let weights: Vec<f32> = rows.iter().flat_map(|row| held.iter().map(|at| row[*at as usize])).collect();
                let gone = program.row(cache as u32, &weights);
                held.extend((!included).then_some(step));
                let behind = if cache < 2 { 0 } else { (step + 2).saturating_sub(WINDOW as u32) };
                held.retain(|position| !gone.contains(position) && *position >= behind);
                left[cache].extend(gone.iter().map(|position| (*position, step)));
            }
        }
        program.end();
        left
    }
}

/// The program at the other end of a pipe.
struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(args: &[&str]) -> Program {
        let mut child = command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary starts");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Program { child, input, output }
    }

    fn say(&mut self, line: &str) {
        self.input.write_all(line.as_bytes()).expect("it listens");
    }

    fn hear_line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it answers");
        line
    }

    fn number(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.output.read_exact(&mut bytes).expect("it answers");
        u32::from_le_bytes(bytes)
    }

    fn row(&mut self, cache: u32, weights: &[f32]) -> Vec<u32> {
        self.input.write_all(&frame(cache, weights)).expect("it listens");
        (0..self.number()).map(|_| self.number()).collect()
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().expect("it ends").success());
    }
}

fn frame(cache: u32, weights: &[f32]) -> Vec<u8> {
    let head = [cache, weights.len() as u32].into_iter().flat_map(u32::to_le_bytes);
    head.chain(weights.iter().flat_map(|weight| weight.to_le_bytes())).collect()
}

#[test]
fn what_leaves_is_what_leaves_in_a_replay() {
    for kind in [SelfAttention::Included, SelfAttention::Excluded] {
        let case = Case::new(kind);
        for policy in ["h2o", "tova", "snapkv", "streaming-llm", "random", "scissorhands-paper"] {
            let windows = ["h2o", "snapkv", "random"].contains(&policy);
            let plan = lane(policy, 12, if windows { &[("recent-window", 3)] } else { &[] });
            let args = ["--policy", policy, "--budget", "12", "--recent-window", "3"];
            let told = case.told(&args[..if windows { 6 } else { 4 }]);
            assert_eq!(told, case.replayed(&plan), "{policy}, {kind:?}");
            assert!(told.iter().all(|left| !left.is_empty()), "{policy} evicts");
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_its_place() {
    let hello =
        "{\"kvsim_decide\":1,\"self\":\"included\",\"caches\":[{\"layer\":0,\"head\":\"kv0\",\"query_heads\":1}]}\n";
    let ask = |input: &str, policy: &str| kvsim_reading(input, &["decide", "--policy", policy, "--budget", "64"]);
    for (input, policy, code, problem) in [
        ("", "h2o", 1, "the first line does not name the caches of a model"),
        ("{}\n", "h2o", 1, "missing field"),
        (&hello.replace("1,\"self", "2,\"self"), "h2o", 1, "another version"),
        (&hello.replace("included", "maybe"), "h2o", 1, "\"self\" is neither"),
        (hello, "optimal", 2, "it needs more than the rows of one cache as they come"),
        (hello, "h2o,tova", 2, "one policy decides"),
    ] {
        ask(input, policy).refuses(code, &[problem]);
    }
    let after = |bytes: &[u8]| {
        let input = [hello.as_bytes(), bytes].concat();
        let mut program = Program::start(&["decide", "--policy", "h2o", "--budget", "64"]);
        program.child.stderr = None;
        program.input.write_all(&input).expect("it listens");
        drop(program.input);
        program.child.wait().expect("it ends").code()
    };
    assert_eq!(after(&[]), Some(0));
    assert_eq!(after(&[0, 0]), Some(1), "cut short");
    assert_eq!(after(&frame(1, &[1.0])), Some(1), "no such cache");
    assert_eq!(after(&frame(0, &[1.0, 0.0])), Some(1), "one position is held");
    assert_eq!(after(&frame(0, &[f32::NAN])), Some(1), "no attention");
}
