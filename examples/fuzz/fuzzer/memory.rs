//! Counts what is allocated, so that an execution that takes more than its input calls for is a finding.

use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Starts to measure; what is held now does not count.
pub fn start() -> usize {
    MEMORY.reset_peak_usage();
    MEMORY.current_usage()
}

/// The most that was held beyond `before` since the start.
pub fn most_since(before: usize) -> usize {
    MEMORY.peak_usage().saturating_sub(before)
}
