# podman build -t kvsim . && podman run --rm -v "$PWD:/data" kvsim replay --policy scissorhands --budget 512
FROM rust:1.95-slim-bookworm AS build
WORKDIR /kvsim
COPY Cargo.toml Cargo.lock README.md ./
COPY src src
COPY traces/*.json traces/
# Only the binary is built: the targets of tests, benchmarks and examples stay outside.
RUN sed -i '/^\[\[bench\]\]/,/^$/d' Cargo.toml && cargo build --release --locked --bin kvsim

FROM debian:bookworm-slim
COPY --from=build /kvsim/target/release/kvsim /usr/local/bin/kvsim
WORKDIR /data
ENTRYPOINT ["kvsim"]
