"""Parameters that sources leave open or state roughly, as patterns of keys."""

QUEUES = {"all queues": "path.*.limit"}
LINKS = {"all rates": "path.*.rate", "all delays": "path.*.delay", **QUEUES}
WIFI_3G = {
    "WiFi's rate": "path.wifi*.rate",
    "WiFi's delay": "path.wifi*.delay",
    "WiFi's queue": "path.wifi*.limit",
    "3G's delay": "path.3g*.delay",
    "3G's queue": "path.3g*.limit",
}
BUFFERS = {"both buffers": "connection.*_buffer"}
RECEIVE_BUFFER = {"receive buffer": "connection.*.receive_buffer"}
START = {"start of Multipath TCP": "connection.m*.start"}
"""The connections of Multipath TCP in entries with several connections have names with m."""

A_DESIGN = "its design varies rates, delays and queues"
REAL_TIME = "its runs are in real time"
