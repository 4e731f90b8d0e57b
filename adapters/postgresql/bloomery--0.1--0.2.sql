-- The rest of the vocabulary: unions, counts, values, sketches, files.
\echo Use "ALTER EXTENSION bloomery UPDATE TO '0.2'" to load this file. \quit

CREATE FUNCTION bly_count(bloomery, text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'bly_count_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2;
CREATE FUNCTION bly_count(bloomery, bytea) RETURNS bigint
    AS 'MODULE_PATHNAME', 'bly_count_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2;
CREATE FUNCTION bly_count(bloomery, bigint) RETURNS bigint
    AS 'MODULE_PATHNAME', 'bly_count_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2;
CREATE FUNCTION bly_get(bloomery, text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'bly_get_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2;
CREATE FUNCTION bly_get(bloomery, bytea) RETURNS bigint
    AS 'MODULE_PATHNAME', 'bly_get_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2;
CREATE FUNCTION bly_get(bloomery, bigint) RETURNS bigint
    AS 'MODULE_PATHNAME', 'bly_get_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2;

CREATE FUNCTION bly_info(bloomery) RETURNS jsonb
    AS 'MODULE_PATHNAME', 'bly_info_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
CREATE FUNCTION bly_plan(items bigint, fpr double precision DEFAULT NULL, kind text DEFAULT NULL) RETURNS jsonb
    AS 'MODULE_PATHNAME', 'bly_plan_json' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
CREATE FUNCTION bly_likeness(bloomery, bloomery) RETURNS double precision
    AS 'MODULE_PATHNAME', 'bly_likeness_of' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;

CREATE FUNCTION bly_union(bloomery, bloomery) RETURNS bloomery
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
CREATE OPERATOR || (LEFTARG = bloomery, RIGHTARG = bloomery, FUNCTION = bly_union, COMMUTATOR = ||);

-- Equal are values of the same bytes: =, DISTINCT, GROUP BY and hash joins.
CREATE FUNCTION bly_eq(bloomery, bloomery) RETURNS boolean
    AS 'byteaeq' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION bly_ne(bloomery, bloomery) RETURNS boolean
    AS 'byteane' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION bly_hash(bloomery) RETURNS integer
    AS 'hashvarlena' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR = (LEFTARG = bloomery, RIGHTARG = bloomery, FUNCTION = bly_eq, COMMUTATOR = =, NEGATOR = <>,
    RESTRICT = eqsel, JOIN = eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = bloomery, RIGHTARG = bloomery, FUNCTION = bly_ne, COMMUTATOR = <>, NEGATOR = =,
    RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR CLASS bloomery_ops DEFAULT FOR TYPE bloomery USING hash AS
    OPERATOR 1 =, FUNCTION 1 bly_hash(bloomery);

-- What share of the rows passes, for the planner.
CREATE FUNCTION bly_has_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
CREATE FUNCTION bly_has_share(internal, oid, internal, integer) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT;
ALTER FUNCTION bly_has(bloomery, text) SUPPORT bly_has_support;
ALTER FUNCTION bly_has(bloomery, bytea) SUPPORT bly_has_support;
ALTER FUNCTION bly_has(bloomery, bigint) SUPPORT bly_has_support;
ALTER OPERATOR @> (bloomery, text) SET (RESTRICT = bly_has_share);
ALTER OPERATOR @> (bloomery, bytea) SET (RESTRICT = bly_has_share);
ALTER OPERATOR @> (bloomery, bigint) SET (RESTRICT = bly_has_share);

-- bly_merge_agg(filter), bly_hll_agg(key), bly_minhash_agg(key)
CREATE FUNCTION bly_whole_final(internal) RETURNS bloomery
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION bly_whole_combine(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION bly_whole_serialize(internal) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bly_whole_deserialize(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION bly_merge_step(internal, bloomery) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bly_merge_agg(bloomery) (
    STYPE = internal, SFUNC = bly_merge_step, FINALFUNC = bly_whole_final, FINALFUNC_MODIFY = READ_WRITE,
    COMBINEFUNC = bly_whole_combine, SERIALFUNC = bly_whole_serialize, DESERIALFUNC = bly_whole_deserialize, PARALLEL = SAFE
);

CREATE FUNCTION bly_hll_step(internal, text) RETURNS internal
    AS 'MODULE_PATHNAME', 'bly_hll_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bly_hll_agg(text) (
    STYPE = internal, SFUNC = bly_hll_step, FINALFUNC = bly_whole_final, FINALFUNC_MODIFY = READ_WRITE,
    COMBINEFUNC = bly_whole_combine, SERIALFUNC = bly_whole_serialize, DESERIALFUNC = bly_whole_deserialize, PARALLEL = SAFE
);
CREATE FUNCTION bly_hll_step(internal, bytea) RETURNS internal
    AS 'MODULE_PATHNAME', 'bly_hll_bytea' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bly_hll_agg(bytea) (
    STYPE = internal, SFUNC = bly_hll_step, FINALFUNC = bly_whole_final, FINALFUNC_MODIFY = READ_WRITE,
    COMBINEFUNC = bly_whole_combine, SERIALFUNC = bly_whole_serialize, DESERIALFUNC = bly_whole_deserialize, PARALLEL = SAFE
);
CREATE FUNCTION bly_hll_step(internal, bigint) RETURNS internal
    AS 'MODULE_PATHNAME', 'bly_hll_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bly_hll_agg(bigint) (
    STYPE = internal, SFUNC = bly_hll_step, FINALFUNC = bly_whole_final, FINALFUNC_MODIFY = READ_WRITE,
    COMBINEFUNC = bly_whole_combine, SERIALFUNC = bly_whole_serialize, DESERIALFUNC = bly_whole_deserialize, PARALLEL = SAFE
);
CREATE FUNCTION bly_minhash_step(internal, text) RETURNS internal
    AS 'MODULE_PATHNAME', 'bly_minhash_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bly_minhash_agg(text) (
    STYPE = internal, SFUNC = bly_minhash_step, FINALFUNC = bly_whole_final, FINALFUNC_MODIFY = READ_WRITE,
    COMBINEFUNC = bly_whole_combine, SERIALFUNC = bly_whole_serialize, DESERIALFUNC = bly_whole_deserialize, PARALLEL = SAFE
);
CREATE FUNCTION bly_minhash_step(internal, bytea) RETURNS internal
    AS 'MODULE_PATHNAME', 'bly_minhash_bytea' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bly_minhash_agg(bytea) (
    STYPE = internal, SFUNC = bly_minhash_step, FINALFUNC = bly_whole_final, FINALFUNC_MODIFY = READ_WRITE,
    COMBINEFUNC = bly_whole_combine, SERIALFUNC = bly_whole_serialize, DESERIALFUNC = bly_whole_deserialize, PARALLEL = SAFE
);
CREATE FUNCTION bly_minhash_step(internal, bigint) RETURNS internal
    AS 'MODULE_PATHNAME', 'bly_minhash_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bly_minhash_agg(bigint) (
    STYPE = internal, SFUNC = bly_minhash_step, FINALFUNC = bly_whole_final, FINALFUNC_MODIFY = READ_WRITE,
    COMBINEFUNC = bly_whole_combine, SERIALFUNC = bly_whole_serialize, DESERIALFUNC = bly_whole_deserialize, PARALLEL = SAFE
);

-- A union of such lists would lose what is rare in each part, so they are not
-- made in parts.
CREATE FUNCTION bly_topk_step(internal, text, bigint) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION bly_topk_step(internal, bigint, bigint) RETURNS internal
    AS 'MODULE_PATHNAME', 'bly_topk_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION bly_topk_final(internal) RETURNS jsonb
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bly_topk_agg(text, bigint) (
    STYPE = internal, SFUNC = bly_topk_step, FINALFUNC = bly_topk_final, PARALLEL = SAFE
);

CREATE AGGREGATE bly_topk_agg(bigint, bigint) (
    STYPE = internal, SFUNC = bly_topk_step, FINALFUNC = bly_topk_final, PARALLEL = SAFE
);

-- Files: for those whom the server lets read and write them.
CREATE FUNCTION bly_has(path text, text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'bly_file_has_text' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 2 SUPPORT bly_has_support;
CREATE FUNCTION bly_has(path text, bytea) RETURNS boolean
    AS 'MODULE_PATHNAME', 'bly_file_has_bytea' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 2 SUPPORT bly_has_support;
CREATE FUNCTION bly_has(path text, bigint) RETURNS boolean
    AS 'MODULE_PATHNAME', 'bly_file_has_int8' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 2 SUPPORT bly_has_support;
CREATE FUNCTION bly_count(path text, text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'bly_file_count_text' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 2;
CREATE FUNCTION bly_count(path text, bytea) RETURNS bigint
    AS 'MODULE_PATHNAME', 'bly_file_count_bytea' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 2;
CREATE FUNCTION bly_count(path text, bigint) RETURNS bigint
    AS 'MODULE_PATHNAME', 'bly_file_count_int8' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 2;
CREATE FUNCTION bly_get(path text, text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'bly_file_get_text' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 2;
CREATE FUNCTION bly_get(path text, bytea) RETURNS bigint
    AS 'MODULE_PATHNAME', 'bly_file_get_bytea' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 2;
CREATE FUNCTION bly_get(path text, bigint) RETURNS bigint
    AS 'MODULE_PATHNAME', 'bly_file_get_int8' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 2;
CREATE FUNCTION bly_info(path text) RETURNS jsonb
    AS 'MODULE_PATHNAME', 'bly_file_info' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 100;
CREATE FUNCTION bly_load(path text) RETURNS bloomery
    AS 'MODULE_PATHNAME', 'bly_load_file' LANGUAGE C VOLATILE STRICT PARALLEL SAFE COST 100;
CREATE FUNCTION bly_save(bloomery, path text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'bly_save_file' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED COST 100;

REVOKE EXECUTE ON FUNCTION bly_has(text, text), bly_has(text, bytea), bly_has(text, bigint),
    bly_count(text, text), bly_count(text, bytea), bly_count(text, bigint),
    bly_get(text, text), bly_get(text, bytea), bly_get(text, bigint), bly_info(text),
    bly_load(text),
    bly_save(bloomery, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION bly_has(text, text), bly_has(text, bytea), bly_has(text, bigint),
    bly_count(text, text), bly_count(text, bytea), bly_count(text, bigint),
    bly_get(text, text), bly_get(text, bytea), bly_get(text, bigint), bly_info(text),
    bly_load(text)
    TO pg_read_server_files;
GRANT EXECUTE ON FUNCTION bly_save(bloomery, text) TO pg_write_server_files;
