#![no_main]
libfuzzer_sys::fuzz_target!(|operations: Vec<anabranch_fuzz::Operation>| {
    anabranch_fuzz::peers(&operations);
});
