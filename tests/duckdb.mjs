// DuckDB for tests: a line of JSON in, a line of JSON out.
//
//     node duckdb.mjs BUILD/npm [NAME=VALUE...]
//
// NAME=VALUE are DuckDB's settings; without, it has one thread.
// {"sql": "..."} gives {"rows": [[...], ...]}; with "each": [value, ...] the
// statement is prepared once and run for each value, and "rows" holds the first
// value of each. What fails gives {"error": "..."}. Numbers come as text.
import { createRequire } from 'module';
import { createInterface } from 'readline';

const require = createRequire(process.argv[2] + '/');
const { DuckDBInstance } = require('@duckdb/node-api');
const settings = Object.fromEntries(process.argv.slice(3).map(word => word.split('=')));
const instance = await DuckDBInstance.create(':memory:', { threads: '1', ...settings });
const db = await instance.connect();

async function each(sql, values) {
    const statement = await db.prepare(sql);
    const rows = [];
    for (const value of values) {
        statement.bindVarchar(1, value);
        const found = await statement.runAndReadAll();
        rows.push(String(found.getRows()[0][0]));
    }
    return rows;
}

for await (const line of createInterface({ input: process.stdin })) {
    const { sql, each: values } = JSON.parse(line);
    try {
        const rows = values ? await each(sql, values)
            : (await db.runAndReadAll(sql)).getRowsJson();
        console.log(JSON.stringify({ rows }));
    } catch (e) {
        console.log(JSON.stringify({ error: String(e) }));
    }
}
process.exit(0);
