// Bulk TCP over N disjoint point-to-point links in ns-3: 100 Mbit/s, 10 ms one way, 100-packet
// drop-tail device queues, MSS 1448, SACK, timestamps, delayed acknowledgements (every second
// segment), 60 simulated seconds. The ns-3 counterpart of bench/scenarios/*.toml.
//
// usage: ns3-bulk PATHS SECONDS; prints one line of JSON.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdio>
#include <cstdlib>
#include <sys/resource.h>
#include <vector>

using namespace ns3;

static double
CpuSeconds ()
{
  rusage usage;
  getrusage (RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
         + 1e-6 * (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void
SetDefaults ()
{
  Config::SetDefault ("ns3::TcpL4Protocol::SocketType", StringValue ("ns3::TcpLinuxReno"));
  Config::SetDefault ("ns3::TcpSocketBase::Sack", BooleanValue (true));
  Config::SetDefault ("ns3::TcpSocketBase::Timestamp", BooleanValue (true));
  Config::SetDefault ("ns3::TcpSocket::SegmentSize", UintegerValue (1448));
  Config::SetDefault ("ns3::TcpSocket::DelAckCount", UintegerValue (2));
  Config::SetDefault ("ns3::TcpSocket::InitialCwnd", UintegerValue (10));
  Config::SetDefault ("ns3::TcpSocket::SndBufSize", UintegerValue (4 << 20));
  Config::SetDefault ("ns3::TcpSocket::RcvBufSize", UintegerValue (6 << 20));
  Config::SetDefault ("ns3::DropTailQueue<Packet>::MaxSize", StringValue ("100p"));
}

static Ptr<PacketSink>
AddPath (NodeContainer hosts, int number, Time end)
{
  PointToPointHelper link;
  link.SetDeviceAttribute ("DataRate", StringValue ("100Mbps"));
  link.SetDeviceAttribute ("Mtu", UintegerValue (1500));
  link.SetChannelAttribute ("Delay", StringValue ("10ms"));
  NetDeviceContainer devices = link.Install (hosts);
  char network[32];
  std::snprintf (network, sizeof network, "10.0.%d.0", number + 1);
  Ipv4AddressHelper addresses;
  addresses.SetBase (network, "255.255.255.0");
  Ipv4InterfaceContainer interfaces = addresses.Assign (devices);
  // Only the device's own drop-tail queue, no queueing discipline above it.
  TrafficControlHelper control;
  control.Uninstall (devices);

  uint16_t port = 5000 + number;
  BulkSendHelper sender ("ns3::TcpSocketFactory", InetSocketAddress (interfaces.GetAddress (1), port));
  sender.SetAttribute ("MaxBytes", UintegerValue (0));
  sender.SetAttribute ("Local", AddressValue (InetSocketAddress (interfaces.GetAddress (0), 0)));
  ApplicationContainer sending = sender.Install (hosts.Get (0));
  sending.Start (Seconds (0));
  sending.Stop (end);
  PacketSinkHelper sink ("ns3::TcpSocketFactory", InetSocketAddress (Ipv4Address::GetAny (), port));
  ApplicationContainer receiving = sink.Install (hosts.Get (1));
  receiving.Start (Seconds (0));
  return DynamicCast<PacketSink> (receiving.Get (0));
}

int
main (int argc, char **argv)
{
  int paths = argc > 1 ? std::atoi (argv[1]) : 1;
  double seconds = argc > 2 ? std::atof (argv[2]) : 60;
  SetDefaults ();
  NodeContainer hosts;
  hosts.Create (2);
  InternetStackHelper stack;
  stack.Install (hosts);
  std::vector<Ptr<PacketSink>> sinks;
  for (int number = 0; number < paths; number++)
    {
      sinks.push_back (AddPath (hosts, number, Seconds (seconds)));
    }
  Simulator::Stop (Seconds (seconds));
  Simulator::Run ();
  double bytes = 0;
  for (const auto &sink : sinks)
    {
      bytes += sink->GetTotalRx ();
    }
  double cpu = CpuSeconds ();
  rusage usage;
  getrusage (RUSAGE_SELF, &usage);
  std::printf ("{\"segments\": %.0f, \"cpu_s\": %.3f, \"segments_per_cpu_s\": %.0f, "
               "\"simulated_s_per_cpu_s\": %.2f, \"peak_rss_bytes\": %ld, \"goodput_bps\": %.0f}\n",
               bytes / 1448, cpu, bytes / 1448 / cpu, seconds / cpu, usage.ru_maxrss * 1024L,
               bytes * 8 / seconds);
  Simulator::Destroy ();
  return 0;
}
