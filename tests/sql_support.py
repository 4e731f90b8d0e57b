"""Vectors that every adapter for a database is held against.

What a key is in SQL, and how the command asks for the same: each engine must
give the answers of `bloomery has` for one and the same file.
"""
# SQL literal, the key as the command takes it
TEXTS = [("'alice'", "alice"), ("'B\u00f6b'", "B\u00f6b"), ("''", ""),
         ("'12'", "12"), ("' x '", " x ")]
INTEGERS = [("7", "7"), ("-1", "-1"), ("0", "0"),
            ("9223372036854775807", "9223372036854775807"),
            ("-9223372036854775808", "-9223372036854775808")]
