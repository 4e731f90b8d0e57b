// DuckDB's part of bench/parquet.py: makes files, and reads columns.
//
//     node parquet.mjs BUILD/npm make FOLDER ROWS
//     node parquet.mjs BUILD/npm read FILE EXPRESSION
//
// read prints the CPU time of one query on one thread, in milliseconds, after
// one that warms it up.
import { createRequire } from 'module';

const [, , npm, verb, where, what] = process.argv;
const require = createRequire(npm + '/');
const { DuckDBInstance } = require('@duckdb/node-api');
const instance = await DuckDBInstance.create(':memory:', { threads: '1' });
const db = await instance.connect();

if (verb === 'make') {
    const columns = {
        id: '(hash(i) >> 1)::bigint',
        url: "'http://example.test/' || hash(i + 7) % 100000000 || '/index.html'",
        user: "'user ' || hash(i * 3) % 5000",
    };
    for (const [name, sql] of Object.entries(columns))
        for (const codec of ['uncompressed', 'snappy', 'zstd'])
            await db.run(`copy (select ${sql} as "${name}" from range(${what}) t(i))
                to '${where}/${name}-${codec}.parquet'
                (compression ${codec}, write_bloom_filter false)`);
} else {
    const query = `select ${what} from '${where}'`;
    await db.run(query);
    const before = process.cpuUsage();
    await db.run(query);
    const used = process.cpuUsage(before);
    console.log((used.user + used.system) / 1000);
}
process.exit(0);
