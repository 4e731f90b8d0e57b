/*
 * folders.h - the files that names stand for, those in folders included
 */
#ifndef BLY_IO_FOLDERS_H
#define BLY_IO_FOLDERS_H

#include <stdbool.h>

#include "report/words.h"

/* The files that names stand for: each one itself, or, if it is a folder and
 * `walk` is set, all regular files below it, in the order of their names; links
 * in folders are not followed. False, with the reason printed, if a folder
 * cannot be read; but where `trouble` is given, that becomes true, and the
 * others are listed. They go behind those that are in *files, which begins as
 * { 0 }. Pairs with files_free(). */
bool files_named(const struct list *names, bool walk, bool *trouble,
                 struct list *files);
void files_free(struct list *files);

#endif
