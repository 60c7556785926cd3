//! Makes a JavaScript module of a WebAssembly module that was compiled with wasm-bindgen.
//!
//! `bind MODULE.wasm FOLDER`

use std::error::Error;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let [module, folder] = std::env::args()
        .skip(1)
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_| "usage: bind MODULE.wasm FOLDER")?;
    Bindgen::new()
        .input_path(module)
        .web(true)?
        .typescript(true)
        .out_name("engine")
        .generate(folder)?;
    Ok(())
}
