//! Where rows come from: generated, from memory, and from native files.

use crate::common::traces::{Folder, decode_4096, in_memory, open_native, pass_time, read_all, rows_of, write_native};
use criterion::{Criterion, Throughput};
use kvsim::trace::safetensors::StoredType;
use kvsim::trace::{RowBlock, Source};

pub fn bench(criterion: &mut Criterion) {
    let folder = Folder::new();
    let mut group = criterion.benchmark_group("decode-4096");
    group.throughput(Throughput::Elements(4095));
    let mut block = RowBlock::default();
    let mut all_rows = |name: &str, source: &dyn Source| {
        group.bench_function(name, |bencher| bencher.iter(|| read_all(source, &mut block)));
    };
    all_rows("generate", &decode_4096());
    all_rows("copy from memory", &in_memory(rows_of(&decode_4096())));
    for (name, stored) in [("f32", StoredType::F32), ("f16", StoredType::F16)] {
        let file = folder.at(&format!("{name}.safetensors"));
        write_native(&decode_4096(), stored, &file);
        all_rows(&format!("read {name}"), &*open_native(&file));
    }
    for name in ["f32", "f16"] {
        let file = folder.at(&format!("{name}.safetensors"));
        group.bench_function(format!("read {name} in blocks and sum"), |bencher| {
            bencher.iter_custom(|times| (0..times).map(|_| pass_time(&file)).sum());
        });
    }
    group.finish();
}
