CREATE EXTENSION bloomery;

-- A filter of a column, asked for another.
CREATE TABLE customers (email text);
CREATE TABLE visits (email text, page int);
INSERT INTO customers SELECT 'user' || i || '@example.org' FROM generate_series(1, 1000) i;
INSERT INTO visits SELECT 'user' || i || '@example.org', i FROM generate_series(991, 1010) i;
SELECT count(*) >= 10 AS all_of_them
    FROM visits WHERE bly_has((SELECT bly_agg(email) FROM customers), email);
SELECT bly_agg(email) @> 'user7@example.org' AS maybe FROM customers;
SELECT bly_agg(email, 'fuse', 'fpr=1e-9') @> 'nobody@example.org' AS maybe FROM customers;

-- What a key is.
SELECT bly_agg(7) @> 7 AS int, bly_agg(7) @> '7' AS parsed, bly_agg('7') @> 7 AS as_text;
SELECT bly_agg(7) @> 'seven';
SELECT bly_agg(7) @> '\x07'::bytea;
SELECT bly_agg(1.5);

-- What a filter is.
SELECT 'nonsense'::bloomery;
SELECT '\x00'::bytea::bloomery;
SELECT pg_column_size(bly_agg(email)) < 8000 AS small FROM customers;

-- Facts and plans.
SELECT bly_info(bly_agg(email))->>'kind' AS kind, bly_info(bly_agg(email))->'capacity' AS capacity FROM customers;
SELECT bly_plan(1000)->>'kind' AS kind, bly_plan(1000, 0.01, 'fuse')->>'kind' AS fuse;
SELECT bly_plan(1000, 2);

-- Unions and sketches.
SELECT (bly_agg(1, NULL, 'items=10') || bly_agg(2, NULL, 'items=10')) @> 2 AS maybe;
SELECT bly_agg(1, NULL, 'seed=1') || bly_agg(1, NULL, 'seed=2');
SELECT bly_topk_agg(v, 2) FROM unnest(ARRAY['a', 'b', 'a', 'c', 'a', 'b']) v;
SELECT round((bly_info(bly_hll_agg(email))->>'items')::numeric, -1) AS customers FROM customers;
SELECT bly_likeness(bly_minhash_agg(email), bly_minhash_agg(email)) AS alike FROM customers;

-- Every function has its place in the extension, and goes with it.
SELECT count(*) > 40 AS many FROM pg_proc WHERE proname LIKE 'bly%' OR proname LIKE 'bloomery%';
DROP EXTENSION bloomery;
SELECT count(*) FROM pg_proc WHERE proname LIKE 'bly%' OR proname LIKE 'bloomery%';
