/*
 * duck_api.h - what is used of DuckDB's C interface for extensions
 *
 * DuckDB hands an extension a table of functions, by position; the positions
 * of version 1.2.0 of this interface never change, and later versions of
 * DuckDB have them too. Declared here are those that are used, each with its
 * place in the table.
 *
 * A second list has functions that DuckDB has by name alone: they tell whose
 * statement it is that calls, and so which files it may open. Where they are
 * missing, as in versions before 1.5, no path is opened at all.
 *
 * All types behind pointers are DuckDB's own.
 */
#ifndef BLY_DUCKDB_API_H
#define BLY_DUCKDB_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DUCK_API_VERSION "v1.2.0"

typedef struct duck_database_is *duck_database;
typedef struct duck_connection_is *duck_connection;
typedef struct duck_type_is *duck_type;
typedef struct duck_chunk_is *duck_chunk;
typedef struct duck_vector_is *duck_vector;
typedef struct duck_scalar_is *duck_scalar;
typedef struct duck_scalars_is *duck_scalars;
typedef struct duck_aggregate_is *duck_aggregate;
typedef struct duck_aggregates_is *duck_aggregates;
typedef struct duck_info_is *duck_info;       /* of a call */
typedef struct duck_init_is *duck_init;       /* of a statement that begins */
typedef struct duck_context_is *duck_context; /* of a connection */
typedef struct duck_files_is *duck_files;
typedef struct duck_file_is *duck_file;
typedef struct duck_file_how_is *duck_file_how;
typedef struct duck_error_is *duck_error;

typedef void duck_destroy(void *);
typedef void duck_call(duck_info, duck_chunk, duck_vector);
typedef void duck_begin(duck_init);

/* A state is memory of DuckDB's, of the size that the first function says. */
typedef uint64_t duck_state_size(duck_info);
typedef void duck_state_begin(duck_info, void *);
typedef void duck_state_update(duck_info, duck_chunk, void **);
typedef void duck_state_combine(duck_info, void **, void **, uint64_t);
typedef void duck_state_finish(duck_info, void **, duck_vector, uint64_t,
                               uint64_t);
typedef void duck_state_end(void **, uint64_t);

/* Place, name, what it gives, what it takes. */
#define DUCK_ENTRIES(X)                                                        \
    X(3, connect, int, (duck_database, duck_connection *))                     \
    X(6, disconnect, void, (duck_connection *))                                \
    X(156, create_logical_type, duck_type, (int))                              \
    X(166, get_type_id, int, (duck_type))                                      \
    X(184, destroy_logical_type, void, (duck_type *))                          \
    X(186, create_data_chunk, duck_chunk, (duck_type *, uint64_t))             \
    X(187, destroy_data_chunk, void, (duck_chunk *))                           \
    X(190, data_chunk_get_vector, duck_vector, (duck_chunk, uint64_t))         \
    X(189, data_chunk_get_column_count, uint64_t, (duck_chunk))                \
    X(191, data_chunk_get_size, uint64_t, (duck_chunk))                        \
    X(193, vector_get_column_type, duck_type, (duck_vector))                   \
    X(194, vector_get_data, void *, (duck_vector))                             \
    X(195, vector_get_validity, uint64_t *, (duck_vector))                     \
    X(196, vector_ensure_validity_writable, void, (duck_vector))               \
    X(198, vector_assign_string_element_len, void,                             \
      (duck_vector, uint64_t, const char *, uint64_t))                         \
    X(209, create_scalar_function, duck_scalar, (void))                        \
    X(210, destroy_scalar_function, void, (duck_scalar *))                     \
    X(211, scalar_function_set_name, void, (duck_scalar, const char *))        \
    X(213, scalar_function_set_special_handling, void, (duck_scalar))          \
    X(214, scalar_function_set_volatile, void, (duck_scalar))                  \
    X(215, scalar_function_add_parameter, void, (duck_scalar, duck_type))      \
    X(216, scalar_function_set_return_type, void, (duck_scalar, duck_type))    \
    X(217, scalar_function_set_extra_info, void,                               \
      (duck_scalar, void *, duck_destroy *))                                   \
    X(218, scalar_function_set_function, void, (duck_scalar, duck_call *))     \
    X(220, scalar_function_get_extra_info, void *, (duck_info))                \
    X(221, scalar_function_set_error, void, (duck_info, const char *))         \
    X(222, create_scalar_function_set, duck_scalars, (const char *))           \
    X(223, destroy_scalar_function_set, void, (duck_scalars *))                \
    X(224, add_scalar_function_to_set, int, (duck_scalars, duck_scalar))       \
    X(225, register_scalar_function_set, int, (duck_connection, duck_scalars)) \
    X(226, create_aggregate_function, duck_aggregate, (void))                  \
    X(227, destroy_aggregate_function, void, (duck_aggregate *))               \
    X(228, aggregate_function_set_name, void, (duck_aggregate, const char *))  \
    X(229, aggregate_function_add_parameter, void,                             \
      (duck_aggregate, duck_type))                                             \
    X(230, aggregate_function_set_return_type, void,                           \
      (duck_aggregate, duck_type))                                             \
    X(231, aggregate_function_set_functions, void,                             \
      (duck_aggregate, duck_state_size *, duck_state_begin *,                  \
       duck_state_update *, duck_state_combine *, duck_state_finish *))        \
    X(232, aggregate_function_set_destructor, void,                            \
      (duck_aggregate, duck_state_end *))                                      \
    X(234, aggregate_function_set_special_handling, void, (duck_aggregate))    \
    X(235, aggregate_function_set_extra_info, void,                            \
      (duck_aggregate, void *, duck_destroy *))                                \
    X(236, aggregate_function_get_extra_info, void *, (duck_info))             \
    X(237, aggregate_function_set_error, void, (duck_info, const char *))      \
    X(238, create_aggregate_function_set, duck_aggregates, (const char *))     \
    X(239, destroy_aggregate_function_set, void, (duck_aggregates *))          \
    X(240, add_aggregate_function_to_set, int,                                 \
      (duck_aggregates, duck_aggregate))                                       \
    X(241, register_aggregate_function_set, int,                               \
      (duck_connection, duck_aggregates))

/* Name, what it gives, what it takes. */
#define DUCK_BY_NAME(X)                                                \
    X(scalar_function_set_init, void, (duck_scalar, duck_begin *))     \
    X(scalar_function_init_get_extra_info, void *, (duck_init))        \
    X(scalar_function_init_get_client_context, void,                   \
      (duck_init, duck_context *))                                     \
    X(scalar_function_init_set_state, void,                            \
      (duck_init, void *, duck_destroy *))                             \
    X(scalar_function_init_set_error, void, (duck_init, const char *)) \
    X(scalar_function_get_state, void *, (duck_info))                  \
    X(destroy_client_context, void, (duck_context *))                  \
    X(client_context_get_file_system, duck_files, (duck_context))      \
    X(destroy_file_system, void, (duck_files *))                       \
    X(file_system_open, int,                                           \
      (duck_files, const char *, duck_file_how, duck_file *))          \
    X(file_system_error_data, duck_error, (duck_files))                \
    X(create_file_open_options, duck_file_how, (void))                 \
    X(destroy_file_open_options, void, (duck_file_how *))              \
    X(file_open_options_set_flag, int, (duck_file_how, int, bool))     \
    X(destroy_file_handle, void, (duck_file *))                        \
    X(error_data_error_type, int, (duck_error))                        \
    X(error_data_message, const char *, (duck_error))                  \
    X(destroy_error_data, void, (duck_error *))

struct duck_entries {
#define DUCK_MEMBER(place, name, gives, takes) gives(*name) takes;
    DUCK_ENTRIES(DUCK_MEMBER)
#undef DUCK_MEMBER
};
struct duck_by_name {
#define DUCK_MEMBER(name, gives, takes) gives(*name) takes;
    DUCK_BY_NAME(DUCK_MEMBER)
#undef DUCK_MEMBER
};

/* What an extension's first function is given. */
struct duck_access {
    void (*set_error)(void *info, const char *error);
    duck_database *(*get_database)(void *info);
    const void *(*get_api)(void *info, const char *version);
};

/* Types of values, by their numbers in the interface. */
enum {
    DUCK_BOOLEAN = 1,
    DUCK_TINYINT = 2,
    DUCK_SMALLINT = 3,
    DUCK_INTEGER = 4,
    DUCK_BIGINT = 5,
    DUCK_UTINYINT = 6,
    DUCK_USMALLINT = 7,
    DUCK_UINTEGER = 8,
    DUCK_UBIGINT = 9,
    DUCK_FLOAT = 10,
    DUCK_DOUBLE = 11,
    DUCK_VARCHAR = 17,
    DUCK_BLOB = 18,
    DUCK_DECIMAL = 19,
    DUCK_ANY = 34,
    DUCK_NULL = 36
};

#define DUCK_FILE_READ 1
#define DUCK_ERROR_PERMISSION 34

/* Text and bytes in a vector: up to 12 are in the value, others behind it. */
#define DUCK_INLINE 12
union duck_string {
    struct {
        uint32_t len;
        char bytes[DUCK_INLINE];
    } here;
    struct {
        uint32_t len;
        char first[4];
        const char *bytes;
    } there;
};

#endif
