check:
    scripts/check

bench:
    cargo run --release -- bench
