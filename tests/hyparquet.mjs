// hyparquet and hyparquet-writer for tests.
//
//     node hyparquet.mjs BUILD/npm write FILE   3000 rows, encodings of all kinds
//     node hyparquet.mjs BUILD/npm ask FILE COLUMN VALUE...
//
// ask prints, for each value, how many rows are found with filters in use, and
// how many bytes of the file were read for it.
import { createRequire } from 'module';
import { readFileSync, writeFileSync } from 'fs';
import { pathToFileURL } from 'url';

const [, , npm, verb, file, column, ...values] = process.argv;
const load = name => import(pathToFileURL(
    createRequire(npm + '/').resolve(name)).href);

if (verb === 'write') {
    const { parquetWriteBuffer } = await load('hyparquet-writer');
    const n = 3000;
    const ids = Array.from({ length: n }, (_, i) => BigInt(i) * 7919n);
    const names = ids.map((_, i) => i % 5 ? `name ${i % 1200}` : null);
    writeFileSync(file, Buffer.from(parquetWriteBuffer({
        rowGroupSize: 1000,
        columnData: [
            { name: 'id', data: ids, type: 'INT64' },
            { name: 'name', data: names, type: 'STRING', nullable: true },
            ...[
                ['prefixed', 'STRING', 'DELTA_BYTE_ARRAY', i => `pre/${i >> 4}/${i}`],
                ['after', 'STRING', 'DELTA_LENGTH_BYTE_ARRAY', i => 'x'.repeat(i % 9) + i],
                ['steps', 'INT64', 'DELTA_BINARY_PACKED', i => BigInt(i * i - 500)],
                ['small', 'INT32', 'DELTA_BINARY_PACKED', i => -7 * i],
                ['split', 'DOUBLE', 'BYTE_STREAM_SPLIT', i => i / 4],
            ].map(([name, type, encoding, make]) => ({
                name, type, encoding, data: ids.map((_, i) => make(i)),
            })),
        ],
    })));
} else {
    const { parquetReadObjects } = await load('hyparquet');
    const bytes = readFileSync(file);
    for (const value of values) {
        let nbytes = 0;
        const source = {
            byteLength: bytes.length,
            slice(from, to) {
                const piece = bytes.subarray(from, to);
                nbytes += piece.length;
                return piece.buffer.slice(piece.byteOffset,
                    piece.byteOffset + piece.length);
            },
        };
        const rows = await parquetReadObjects({
            file: source, columns: [column], useBloomFilters: true,
            filter: { [column]: { $eq: value } },
        });
        console.log(JSON.stringify([rows.length, nbytes]));
    }
}
