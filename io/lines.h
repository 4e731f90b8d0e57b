/*
 * lines.h - the names that dedup has for io/ordered.h, until it is renamed
 */
#ifndef BLY_IO_LINES_H
#define BLY_IO_LINES_H

#include "io/ordered.h"

#define lines_file input_file
#define lines_block block
#define lines_free input_close
#define lines_fail input_fail
#define lines_next input_line
#define lines_spool input_spool
#define lines_workers ordered_workers
#define lines_run ordered_run
#define lines_run_some ordered_run_some
#define LINES_MAX_LEAST INPUT_LINE_LEAST
#define LINES_MAX_DEFAULT INPUT_LINE_MOST

#endif
