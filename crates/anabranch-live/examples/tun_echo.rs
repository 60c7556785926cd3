//! An echo server on the engine behind a TUN device, which this machine's programs can reach.
//!
//! ```sh
//! sudo ip tuntap add dev anabranch0 mode tun user "$USER"
//! sudo ip address add 10.99.0.1/24 dev anabranch0
//! sudo ip link set anabranch0 up
//! cargo run -p anabranch-live --example tun_echo &
//! echo hello | nc -N 10.99.0.2 7
//! ```

#[cfg(target_os = "linux")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::io::Read;

    use anabranch_host::Host;
    use anabranch_live::TunDevice;
    use anabranch_proto::config::ConnectionConfig;

    let mut secret = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut secret)?;
    let device = TunDevice::open("anabranch0")?;
    let addresses = vec!["10.99.0.2".parse()?];
    let host = Host::new(device, addresses, secret, ConnectionConfig::default());

    let listener = host.listen(7)?;
    loop {
        let (stream, client) = listener.accept().await?;
        println!("{client:?} has connected");
        tokio::spawn(async move {
            let (mut reader, mut writer) = tokio::io::split(stream);
            tokio::io::copy(&mut reader, &mut writer).await?;
            tokio::io::AsyncWriteExt::shutdown(&mut writer).await
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("tun_echo needs Linux");
}
