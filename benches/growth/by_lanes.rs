//! The table from 1 to 256 lanes.

use crate::common::binary::wall_time;
use crate::common::rounds::{interleave, rounds};
use crate::common::table::{Table, ms, times};
use crate::common::traces::Folder;
use crate::generate;

const HEADER: [&str; 6] = ["lanes", "one thread", "per lane", "two threads", "per lane", "one / two threads"];

pub fn print() {
    let mut table = Table::new(HEADER, 0);
    let folder = Folder::new();
    let file = generate(&folder, 4096, "f32");
    let path = file.to_str().expect("a plain name");
    (0..=8).for_each(|power| measure(path, 1 << power, &mut table));
    println!("{}", table.markdown());
    println!(
        "scissorhands at budget 512 on decode-4096 stored as f32, with windows from 32 up, one a lane. The whole process, \
         least of the rounds."
    );
}

fn measure(path: &str, lanes: usize, table: &mut Table) {
    let windows = format!("32..{}+1", 31 + lanes);
    let wall = |threads: &str| {
        let lanes = ["--policy", "scissorhands", "--budget", "512", "--recent-window", &windows];
        wall_time(&[&["replay", path, "-q", "--threads", threads], &lanes[..]].concat())
    };
    let [one, two] = interleave(rounds(7), [&mut || wall("1"), &mut || wall("2")]);
    eprintln!("measured: {lanes} lanes");
    let per_lane = |seconds: f64| ms(seconds / lanes as f64);
    table.row([
        lanes.to_string(),
        ms(one.least()),
        per_lane(one.least()),
        ms(two.least()),
        per_lane(two.least()),
        times(one.least() / two.least()),
    ]);
}
