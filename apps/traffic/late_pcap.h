/*
 * late_pcap.h - libpcap, loaded when it is needed
 */
#ifndef BLY_LATE_PCAP_H
#define BLY_LATE_PCAP_H

#include <pcap/pcap.h>

#include "io/late.h"

#define PCAP_CALLS(X)            \
    X(pcap_next_ex)              \
    X(pcap_datalink)             \
    X(pcap_datalink_val_to_name) \
    X(pcap_geterr)               \
    X(pcap_close)                \
    X(pcap_create)               \
    X(pcap_set_snaplen)          \
    X(pcap_set_promisc)          \
    X(pcap_set_timeout)          \
    X(pcap_set_tstamp_precision) \
    X(pcap_set_buffer_size)      \
    X(pcap_stats)                \
    X(pcap_activate)             \
    X(pcap_setnonblock)          \
    X(pcap_get_selectable_fd)    \
    X(pcap_statustostr)

extern struct pcap_calls {
    PCAP_CALLS(LATE_MEMBER)
} pcap_calls;

/* Load it; false, with the reason printed. */
bool pcap_begin(void);

#define pcap_next_ex (*pcap_calls.late_pcap_next_ex)
#define pcap_datalink (*pcap_calls.late_pcap_datalink)
#define pcap_datalink_val_to_name (*pcap_calls.late_pcap_datalink_val_to_name)
#define pcap_geterr (*pcap_calls.late_pcap_geterr)
#define pcap_close (*pcap_calls.late_pcap_close)
#define pcap_create (*pcap_calls.late_pcap_create)
#define pcap_set_snaplen (*pcap_calls.late_pcap_set_snaplen)
#define pcap_set_promisc (*pcap_calls.late_pcap_set_promisc)
#define pcap_set_timeout (*pcap_calls.late_pcap_set_timeout)
#define pcap_set_tstamp_precision (*pcap_calls.late_pcap_set_tstamp_precision)
#define pcap_set_buffer_size (*pcap_calls.late_pcap_set_buffer_size)
#define pcap_stats (*pcap_calls.late_pcap_stats)
#define pcap_activate (*pcap_calls.late_pcap_activate)
#define pcap_setnonblock (*pcap_calls.late_pcap_setnonblock)
#define pcap_get_selectable_fd (*pcap_calls.late_pcap_get_selectable_fd)
#define pcap_statustostr (*pcap_calls.late_pcap_statustostr)

#endif
