"""A Mininet script: a host with WiFi and LTE downloads from a server behind a shared access link.

sudo python3 examples/mininet_topology.py                   # with Mininet
anabranch import examples/mininet_topology.py --out phone.toml
"""

from mininet.link import TCLink
from mininet.net import Mininet


def run() -> None:
    net = Mininet(link=TCLink)
    phone, server = net.addHost("phone"), net.addHost("server")
    access = net.addSwitch("access")
    for name, rate, delay in (("wifi", 8, 10), ("lte", 20, 30)):
        switch = net.addSwitch(name)
        net.addLink(phone, switch, bw=rate, delay=f"{delay}ms", max_queue_size=100)
        net.addLink(switch, access)
    net.addLink(access, server, bw=25, delay="2ms", max_queue_size=50)
    net.start()
    phone.cmd("sysctl -w net.ipv4.tcp_congestion_control=cubic")
    server.cmd("iperf3 -s -D")
    print(phone.cmd(f"mptcpize run iperf3 -c {server.IP()} -t 30 -R"))
    net.stop()


if __name__ == "__main__":
    run()
