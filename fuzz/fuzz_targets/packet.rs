#![no_main]
libfuzzer_sys::fuzz_target!(|octets: &[u8]| anabranch_fuzz::packet(octets));
