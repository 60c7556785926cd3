// Bulk TCP or Multipath TCP (LIA) in htsim: N disjoint paths of 100 Mbit/s and 10 ms one way, and
// drop-tail queues of 100 packets. The counterpart of bench/scenarios/*.toml in htsim. Its packets
// have a size and no bytes. It has no SACK, acknowledges every packet, and has no limit of the
// receive window here.
//
// usage: htsim-bulk PATHS SECONDS; prints one line of JSON.
#include "clock.h"
#include "eventlist.h"
#include "mtcp.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sys/resource.h>
#include <vector>

// The library expects these two from the program.
string ntoa(double number) { return std::to_string(number); }
string itoa(uint64_t number) { return std::to_string(number); }

static const int PACKET = 1500;

static Route *route(EventList &events, PacketSink *end) {
    auto *hops = new Route();
    hops->push_back(new Queue(speedFromMbps((uint64_t)100), 100 * PACKET, events, nullptr));
    hops->push_back(new Pipe(timeFromMs(10), events));
    hops->push_back(end);
    return hops;
}

static TcpSink *add_path(EventList &events, TcpRtxTimerScanner &timers, MultipathTcpSrc *source,
                         MultipathTcpSink *sink) {
    auto *sender = new TcpSrc(nullptr, nullptr, events);
    auto *receiver = new TcpSink();
    timers.registerTcp(*sender);
    if (source != nullptr) {
        source->addSubflow(sender);
        sink->addSubflow(receiver);
    }
    sender->connect(*route(events, receiver), *route(events, sender), *receiver, 0);
    return receiver;
}

int main(int argc, char **argv) {
    int paths = argc > 1 ? std::atoi(argv[1]) : 1;
    double seconds = argc > 2 ? std::atof(argv[2]) : 60;
    Packet::set_packet_size(PACKET);
    EventList events;
    events.setEndtime(timeFromSec(seconds));
    TcpRtxTimerScanner timers(timeFromMs(10), events);
    std::unique_ptr<MultipathTcpSrc> source;
    std::unique_ptr<MultipathTcpSink> sink;
    if (paths > 1) {
        source = std::make_unique<MultipathTcpSrc>(COUPLED_INC, events, nullptr, 1 << 30);
        sink = std::make_unique<MultipathTcpSink>(events);
        source->connect(sink.get());
    }
    std::vector<TcpSink *> receivers;
    for (int path = 0; path < paths; path++) {
        receivers.push_back(add_path(events, timers, source.get(), sink.get()));
    }
    while (events.doNextEvent()) {
    }
    double bytes = 0;
    for (TcpSink *receiver : receivers) {
        bytes += receiver->_cumulative_ack;
    }
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double cpu = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
                 + 1e-6 * (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    std::printf("{\"segments\": %.0f, \"cpu_s\": %.3f, \"segments_per_cpu_s\": %.0f, "
                "\"simulated_s_per_cpu_s\": %.2f, \"peak_rss_bytes\": %ld, \"goodput_bps\": %.0f}\n",
                bytes / PACKET, cpu, bytes / PACKET / cpu, seconds / cpu, usage.ru_maxrss * 1024L,
                bytes * 8 / seconds);
}
