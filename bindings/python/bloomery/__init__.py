"""The Bloom-filter family: sets that fit in a few bits per key.

    >>> from bloomery import Filter
    >>> f = Filter.build(["alice", "bob"])
    >>> "alice" in f, "mallory" in f
    (True, False)

"No" is certain; "yes" is wrong with a small probability that you choose. A file
that is saved here answers the same in C, SQL, Redis and on the command line.
"""
from ._bloomery import (Bitmap, Error, Filter, HyperLogLog, Index, MinHash, TopK,
                        __version__, kinds, plan, vector_angle, vector_dedup,
                        vector_near, vector_pairs, vector_sketch)

for function in (kinds, plan, vector_angle, vector_dedup, vector_near, vector_pairs,
                 vector_sketch):
    function.__module__ = "bloomery"
del function

__all__ = ["Bitmap", "Error", "Filter", "HyperLogLog", "Index", "MinHash", "TopK",
           "kinds", "plan", "vector_angle", "vector_dedup", "vector_near", "vector_pairs",
           "vector_sketch"]
