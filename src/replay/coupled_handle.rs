//! Puts one coupled policy behind several caches: each cache gets a handle that passes its calls on.

use crate::policy::coupled::CoupledPolicy;
use crate::policy::{Admission, Observation, Overflow, Policy};
use crate::position::Slot;
use std::sync::{Arc, Mutex, MutexGuard};

/// What one cache sees of a coupled policy.
///
/// A lane has its caches take turns, so that the lock is never contended; it lets the lane as a
/// whole move between threads.
struct CoupledHandle {
    shared: Arc<Mutex<Box<dyn CoupledPolicy>>>,
    cache: usize,
}

/// One policy for each of `caches` caches, all of them the given one.
pub(super) fn handles(policy: Box<dyn CoupledPolicy>, caches: usize) -> impl Iterator<Item = Box<dyn Policy>> {
    let shared = Arc::new(Mutex::new(policy));
    (0..caches).map(move |cache| Box::new(CoupledHandle { shared: Arc::clone(&shared), cache }) as Box<dyn Policy>)
}

impl CoupledHandle {
    fn policy(&self) -> MutexGuard<'_, Box<dyn CoupledPolicy>> {
        self.shared.lock().expect("a policy that panics ends the run")
    }
}

impl Policy for CoupledHandle {
    fn admit(&mut self, admission: Admission<'_>) {
        self.policy().admit(self.cache, admission);
    }

    fn observe(&mut self, seen: Observation<'_>) {
        self.policy().observe(self.cache, seen);
    }

    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        self.policy().choose(self.cache, overflow, victims);
    }

    fn forget(&mut self, slots: &[Slot]) {
        self.policy().forget(self.cache, slots);
    }

    fn slots(&self) -> Option<usize> {
        self.policy().slots(self.cache)
    }

    fn slot_bytes(&self) -> usize {
        self.policy().slot_bytes()
    }

    /// The shared state counts once, with the first cache.
    fn fixed_bytes(&self) -> usize {
        if self.cache == 0 { self.policy().shared_bytes() } else { 0 }
    }
}
