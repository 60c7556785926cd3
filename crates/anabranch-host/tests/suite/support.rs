//! Scenarios and runtimes for the tests.

use std::net::SocketAddr;

use anabranch_host::{Emulation, Stream};
use anabranch_sim::scenario::Scenario;
use tokio::runtime::{Builder, Runtime};

/// Two paths of 10 Mbit/s: 10 ms and 30 ms each way, with some random loss. `of_connection` are
/// further keys of the connection.
pub(crate) fn scenario(of_connection: &str) -> Scenario {
    let path = |name: &str, delay: &str| {
        format!(
            "[[path]]\nname = \"{name}\"\nrate = \"10Mbit/s\"\ndelay = \"{delay}\"\n\
             limit = \"100packets\"\nloss = \"0.5%\"\n"
        )
    };
    let text = format!(
        "name = \"test\"\nduration = \"60s\"\n{}{}[[connection]]\nworkload = {{ kind = \"bulk\" }}\n\
         {of_connection}\n",
        path("near", "10ms"),
        path("far", "30ms")
    );
    Scenario::from_toml(&text, "test.toml").expect("the scenario is right")
}

/// A runtime in virtual time.
pub(crate) fn virtual_time() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime")
}

/// The address of port 80 of the server.
pub(crate) fn server_of(emulation: &Emulation) -> SocketAddr {
    SocketAddr::new(emulation.server().addresses()[0], 80)
}

/// A connection: the client's stream and the server's.
pub(crate) async fn connected(emulation: &Emulation) -> (Stream, Stream) {
    let listener = emulation.server().listen(80).expect("the port is free");
    let (client, server) =
        tokio::join!(emulation.client().connect(server_of(emulation)), listener.accept());
    (client.expect("it connects"), server.expect("it accepts").0)
}
