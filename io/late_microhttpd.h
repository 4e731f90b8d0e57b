/*
 * late_microhttpd.h - libmicrohttpd, loaded when it is needed
 */
#ifndef BLY_LATE_MICROHTTPD_H
#define BLY_LATE_MICROHTTPD_H

#include <microhttpd.h>

#include "io/late.h"

#define MHD_CALLS(X)                     \
    X(MHD_start_daemon)                  \
    X(MHD_stop_daemon)                   \
    X(MHD_add_connection)                \
    X(MHD_get_connection_info)           \
    X(MHD_lookup_connection_value)       \
    X(MHD_add_response_header)           \
    X(MHD_create_response_from_buffer)   \
    X(MHD_create_response_from_callback) \
    X(MHD_queue_response)                \
    X(MHD_destroy_response)

extern struct mhd_calls {
    MHD_CALLS(LATE_MEMBER)
} mhd_calls;

/* Load it; false, with the reason printed. */
bool mhd_begin(void);

#define MHD_start_daemon (*mhd_calls.late_MHD_start_daemon)
#define MHD_stop_daemon (*mhd_calls.late_MHD_stop_daemon)
#define MHD_add_connection (*mhd_calls.late_MHD_add_connection)
#define MHD_get_connection_info (*mhd_calls.late_MHD_get_connection_info)
#define MHD_lookup_connection_value \
    (*mhd_calls.late_MHD_lookup_connection_value)
#define MHD_add_response_header (*mhd_calls.late_MHD_add_response_header)
#define MHD_create_response_from_buffer \
    (*mhd_calls.late_MHD_create_response_from_buffer)
#define MHD_create_response_from_callback \
    (*mhd_calls.late_MHD_create_response_from_callback)
#define MHD_queue_response (*mhd_calls.late_MHD_queue_response)
#define MHD_destroy_response (*mhd_calls.late_MHD_destroy_response)

#endif
