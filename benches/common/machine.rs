//! What a table of times has to say of the machine.

/// One line: processor, cores and load.
pub fn line() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = load().map_or(String::new(), |load| format!(", load {load} at the end"));
    format!("Measured on {}, {cores} cores{load}.", processor())
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, model)| model.to_owned())
}

/// Processes that ran or wanted to, on average over the last minute.
fn load() -> Option<String> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next().map(str::to_owned)
}
