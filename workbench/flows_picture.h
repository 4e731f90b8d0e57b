/*
 * flows_picture.h - what the largest flows have sent over time, drawn
 */
#ifndef BLY_FLOWS_PICTURE_H
#define BLY_FLOWS_PICTURE_H

#include "apps/traffic/flows_history.h"

history_draw flows_picture;

#endif
