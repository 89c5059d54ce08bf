#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lssvm_fuzz::data(input));
