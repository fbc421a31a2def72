//! What a table of times has to say of the machine: what it is, and how much of it others took.

use std::fs::read_to_string;

/// Looks at the machine from the start of a run to its end.
pub struct Machine {
    started: Option<Ticks>,
}

/// Processor time since the system started, in the system's ticks, summed over cores.
#[derive(Clone, Copy)]
struct Ticks {
    /// All there was, idle time included.
    all: u64,
    /// Spent in processes, or taken by the host of a virtual machine.
    busy: u64,
    /// Spent in this process and those that it has waited for.
    own: u64,
}

impl Machine {
    /// Begins to look.
    pub fn watch() -> Machine {
        Machine { started: Ticks::now() }
    }

    /// One line: processor, cores, and the share of their time that other processes took.
    pub fn line(&self) -> String {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let others =
            self.others().map_or(String::new(), |share| format!("; others took {share:.0} % of them meanwhile"));
        format!("Measured on {}, {cores} cores{others}.", processor())
    }

    fn others(&self) -> Option<f64> {
        let (before, after) = (self.started?, Ticks::now()?);
        let (busy, own) = (after.busy - before.busy, after.own - before.own);
        Some(100.0 * busy.saturating_sub(own) as f64 / (after.all - before.all).max(1) as f64)
    }
}

impl Ticks {
    /// `None` where the system does not tell.
    fn now() -> Option<Ticks> {
        let system = read_to_string("/proc/stat").ok()?;
        let system = numbers(system.lines().next()?);
        // user, nice, system, idle, iowait, irq, softirq, steal
        let all = system.get(..8)?.iter().sum();
        let busy = all - system[3] - system[4];
        // What stands after the name in parentheses: the state, ten numbers, utime, stime, cutime, cstime.
        let own = read_to_string("/proc/self/stat").ok()?;
        let own = numbers(own.rsplit_once(')')?.1);
        Some(Ticks { all, busy, own: own.get(10..14)?.iter().sum() })
    }
}

/// The numbers in a line after its first word; 0 for what is no whole number.
fn numbers(line: &str) -> Vec<u64> {
    line.split_whitespace().skip(1).map(|word| word.parse().unwrap_or(0)).collect()
}

fn processor() -> String {
    let text = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, model)| model.to_owned())
}
