//! Makes the service's code and its descriptor from the `.proto`, without `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.open_files(["wirefs.proto"])?;
    std::fs::write(out.join("descriptor.bin"), compiler.encode_file_descriptor_set())?;
    tonic_prost_build::configure().bytes(".").compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
