//! smoke
use kvsim::policy::table::*;
use kvsim::replay::*;
use kvsim::trace::formats;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let s = formats::open(std::ffi::OsStr::new(&args[1])).unwrap();
    let caches = caches_of(s.info()).unwrap();
    let mut lanes = vec![];
    for e in POLICIES {
        for b in args[2].split(',') {
            lanes.push(LanePlan::new(e, b.parse().unwrap()));
        }
    }
    let t = std::time::Instant::now();
    let out =
        replay(&*s, &caches, &lanes, &Options { threads: args[3].parse().unwrap(), ..Default::default() }, &NoObserver)
            .unwrap();
    eprintln!("{:?}", t.elapsed());
    for o in out {
        for (l, t) in lanes.iter().zip(&o.tallies) {
            println!(
                "{} {:15} {:?} {:.6} {:.6} {:.6} full {:.6} peak {:.6} broken {:.6} ev {}",
                o.cache.label,
                l.entry.name,
                l.budget,
                t.retained / t.rows as f64,
                t.heavy_hits as f64 / t.heavy_possible as f64,
                t.pivotal_hits as f64 / t.pivotal_possible as f64,
                t.retained_full / t.rows_full as f64,
                t.peak_misses as f64 / t.rows as f64,
                t.broken_rows as f64 / t.rows as f64,
                t.eviction_calls
            );
        }
    }
}
