-- The type, and what builds and asks it. CREATE EXTENSION runs this and then
-- what later versions have added.
\echo Use "CREATE EXTENSION bloomery" to load this file. \quit

CREATE TYPE bloomery;

CREATE FUNCTION bloomery_in(cstring) RETURNS bloomery
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloomery_out(bloomery) RETURNS cstring
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloomery_recv(internal) RETURNS bloomery
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloomery_send(bloomery) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- Filters do not get smaller by compression: EXTERNAL keeps them as they are.
CREATE TYPE bloomery (
    INPUT = bloomery_in, OUTPUT = bloomery_out,
    RECEIVE = bloomery_recv, SEND = bloomery_send,
    INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external
);
COMMENT ON TYPE bloomery IS 'a filter or a sketch: the bytes of a .bly file';

CREATE FUNCTION bloomery(bytea) RETURNS bloomery
    AS 'MODULE_PATHNAME', 'bloomery_from_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE CAST (bytea AS bloomery) WITH FUNCTION bloomery(bytea);
CREATE CAST (bloomery AS bytea) WITHOUT FUNCTION;

-- bly_has(filter, key), and filter @> key
CREATE FUNCTION bly_has(bloomery, text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'bly_has_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2;
CREATE OPERATOR @> (LEFTARG = bloomery, RIGHTARG = text, FUNCTION = bly_has, RESTRICT = contsel);
CREATE FUNCTION bly_has(bloomery, bytea) RETURNS boolean
    AS 'MODULE_PATHNAME', 'bly_has_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2;
CREATE OPERATOR @> (LEFTARG = bloomery, RIGHTARG = bytea, FUNCTION = bly_has, RESTRICT = contsel);
CREATE FUNCTION bly_has(bloomery, bigint) RETURNS boolean
    AS 'MODULE_PATHNAME', 'bly_has_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2;
CREATE OPERATOR @> (LEFTARG = bloomery, RIGHTARG = bigint, FUNCTION = bly_has, RESTRICT = contsel);

-- bly_agg(key [, kind [, options]])
CREATE FUNCTION bly_agg_final(internal) RETURNS bloomery
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION bly_agg_combine(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION bly_agg_serialize(internal) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bly_agg_deserialize(bytea, internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bly_agg_step(internal, text) RETURNS internal
    AS 'MODULE_PATHNAME', 'bly_agg_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bly_agg(text) (
    STYPE = internal, SFUNC = bly_agg_step, FINALFUNC = bly_agg_final, FINALFUNC_MODIFY = READ_WRITE,
    COMBINEFUNC = bly_agg_combine, SERIALFUNC = bly_agg_serialize, DESERIALFUNC = bly_agg_deserialize, PARALLEL = SAFE
);
CREATE FUNCTION bly_agg_step(internal, text, text) RETURNS internal
    AS 'MODULE_PATHNAME', 'bly_agg_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bly_agg(text, text) (
    STYPE = internal, SFUNC = bly_agg_step, FINALFUNC = bly_agg_final, FINALFUNC_MODIFY = READ_WRITE,
    COMBINEFUNC = bly_agg_combine, SERIALFUNC = bly_agg_serialize, DESERIALFUNC = bly_agg_deserialize, PARALLEL = SAFE
);
CREATE FUNCTION bly_agg_step(internal, text, text, text) RETURNS internal
    AS 'MODULE_PATHNAME', 'bly_agg_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bly_agg(text, text, text) (
    STYPE = internal, SFUNC = bly_agg_step, FINALFUNC = bly_agg_final, FINALFUNC_MODIFY = READ_WRITE,
    COMBINEFUNC = bly_agg_combine, SERIALFUNC = bly_agg_serialize, DESERIALFUNC = bly_agg_deserialize, PARALLEL = SAFE
);
CREATE FUNCTION bly_agg_step(internal, bytea) RETURNS internal
    AS 'MODULE_PATHNAME', 'bly_agg_bytea' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bly_agg(bytea) (
    STYPE = internal, SFUNC = bly_agg_step, FINALFUNC = bly_agg_final, FINALFUNC_MODIFY = READ_WRITE,
    COMBINEFUNC = bly_agg_combine, SERIALFUNC = bly_agg_serialize, DESERIALFUNC = bly_agg_deserialize, PARALLEL = SAFE
);
CREATE FUNCTION bly_agg_step(internal, bytea, text) RETURNS internal
    AS 'MODULE_PATHNAME', 'bly_agg_bytea' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bly_agg(bytea, text) (
    STYPE = internal, SFUNC = bly_agg_step, FINALFUNC = bly_agg_final, FINALFUNC_MODIFY = READ_WRITE,
    COMBINEFUNC = bly_agg_combine, SERIALFUNC = bly_agg_serialize, DESERIALFUNC = bly_agg_deserialize, PARALLEL = SAFE
);
CREATE FUNCTION bly_agg_step(internal, bytea, text, text) RETURNS internal
    AS 'MODULE_PATHNAME', 'bly_agg_bytea' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bly_agg(bytea, text, text) (
    STYPE = internal, SFUNC = bly_agg_step, FINALFUNC = bly_agg_final, FINALFUNC_MODIFY = READ_WRITE,
    COMBINEFUNC = bly_agg_combine, SERIALFUNC = bly_agg_serialize, DESERIALFUNC = bly_agg_deserialize, PARALLEL = SAFE
);
CREATE FUNCTION bly_agg_step(internal, bigint) RETURNS internal
    AS 'MODULE_PATHNAME', 'bly_agg_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bly_agg(bigint) (
    STYPE = internal, SFUNC = bly_agg_step, FINALFUNC = bly_agg_final, FINALFUNC_MODIFY = READ_WRITE,
    COMBINEFUNC = bly_agg_combine, SERIALFUNC = bly_agg_serialize, DESERIALFUNC = bly_agg_deserialize, PARALLEL = SAFE
);
CREATE FUNCTION bly_agg_step(internal, bigint, text) RETURNS internal
    AS 'MODULE_PATHNAME', 'bly_agg_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bly_agg(bigint, text) (
    STYPE = internal, SFUNC = bly_agg_step, FINALFUNC = bly_agg_final, FINALFUNC_MODIFY = READ_WRITE,
    COMBINEFUNC = bly_agg_combine, SERIALFUNC = bly_agg_serialize, DESERIALFUNC = bly_agg_deserialize, PARALLEL = SAFE
);
CREATE FUNCTION bly_agg_step(internal, bigint, text, text) RETURNS internal
    AS 'MODULE_PATHNAME', 'bly_agg_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bly_agg(bigint, text, text) (
    STYPE = internal, SFUNC = bly_agg_step, FINALFUNC = bly_agg_final, FINALFUNC_MODIFY = READ_WRITE,
    COMBINEFUNC = bly_agg_combine, SERIALFUNC = bly_agg_serialize, DESERIALFUNC = bly_agg_deserialize, PARALLEL = SAFE
);
