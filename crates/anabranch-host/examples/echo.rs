//! A protocol over two emulated paths, in virtual time: a client sends lines, and a server answers
//! each of them. In the middle, the first path goes down.
//!
//! ```sh
//! cargo run -p anabranch-host --example echo
//! ```

use std::io;
use std::time::Duration;

use anabranch_host::{Emulation, Listener, Stream};
use anabranch_proto::remedy::OpportunisticRetransmission;
use anabranch_proto::scheduler::Ecf;
use anabranch_sim::scenario::Scenario;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::{Instant, sleep};

const PHONE: &str = r#"
    name = "phone"
    duration = "60s"
    [[path]]
    name = "wifi"
    rate = "8Mbit/s"
    delay = "10ms"
    limit = "54packets"
    [[path]]
    name = "lte"
    rate = "2Mbit/s"
    delay = "40ms"
    limit = "100packets"
    [[connection]]
    workload = { kind = "bulk" }
"#;

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (line, delay) in talk(1).await?.into_iter().enumerate() {
        println!("line {line}: answered after {} ms", delay.as_millis());
    }
    Ok(())
}

/// The delays of ten answers, in a run with this seed.
async fn talk(seed: u64) -> Result<Vec<Duration>, Box<dyn std::error::Error>> {
    let phone = Emulation::new(&Scenario::from_toml(PHONE, "phone.toml")?, seed)?;
    tokio::spawn(serve(phone.server().listen(7)?));

    // The options of the engine, for this connection.
    let options = (phone.client().config().clone())
        .scheduler(|| Box::new(Ecf::default()))
        .remedies(|| vec![Box::new(OpportunisticRetransmission)])
        .send_buffer(100_000);
    let server = phone.server().addresses()[0];
    let stream = phone.client().connect_with((server, 7), options).await?;
    let (mut lines, mut out) = in_lines(stream);
    let mut delays = Vec::new();
    for number in 0..10 {
        if number == 5 {
            phone.set_path(0, false)?;
        }
        let asked = Instant::now();
        out.write_all(format!("line {number}\n").as_bytes()).await?;
        let answer = lines.next_line().await?;
        assert_eq!(answer, Some(format!("you said: line {number}")));
        delays.push(asked.elapsed());
        sleep(Duration::from_secs(1)).await;
    }
    Ok(delays)
}

async fn serve(listener: Listener) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let (mut lines, mut out) = in_lines(stream);
            while let Ok(Some(line)) = lines.next_line().await {
                out.write_all(format!("you said: {line}\n").as_bytes()).await?;
            }
            io::Result::Ok(())
        });
    }
}

type Halves =
    (tokio::io::Lines<BufReader<tokio::io::ReadHalf<Stream>>>, tokio::io::WriteHalf<Stream>);

fn in_lines(stream: Stream) -> Halves {
    let (read, write) = tokio::io::split(stream);
    (BufReader::new(read).lines(), write)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn wifi_answers_in_its_round_trip_time_until_lte_takes_over() {
        let delays = talk(1).await.expect("both paths do not fail at once");
        // 20 ms over WiFi, and 80 ms over LTE. Short packets take less than 2 ms to send. Tokio
        // wakes each of the two programs within 1 ms.
        let millis: Vec<_> = delays.iter().map(Duration::as_millis).collect();
        assert!(millis[..5].iter().all(|delay| (20..24).contains(delay)), "{millis:?}");
        assert!(millis[6..].iter().all(|delay| (80..84).contains(delay)), "{millis:?}");
    }
}
