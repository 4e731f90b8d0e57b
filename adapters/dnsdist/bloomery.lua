--[[
bloomery.lua - lists of domains in dnsdist, through LuaJIT's FFI

    local bloomery = dofile("/usr/share/bloomery/bloomery.lua")
    local ads = bloomery.open("/var/lib/lists/ads.bly")
    addAction(LuaFFIRule(function(dq) return ads:listed(dq) end),
              RCodeAction(DNSRCode.NXDOMAIN))

A list is what `bloomery urls build --domains -o ads.bly` makes: an ordinary
filter, with its exceptions in a file beside it. A name is listed if the list has
it or a name above it, and no exception covers it.

The list may be replaced at any time. Once a second, when a question comes, it is
looked at whether the path leads to another file; that one is read and verified
as a whole, and takes the place of the old one if it is good. If not, the old one
stays, and the reason is logged once.

Options of open(), in a table: library (the path of libbloomery.so, where it is
not among the system's), key_file (the secret of a keyed list), log (a function
for messages; dnsdist's errlog if there is one).

LuaFFIRule runs under one lock. For a list per thread, without a lock, give the
first two lines and the function as text to LuaFFIPerThreadRule.
]]
local ffi = require("ffi")

ffi.cdef [[
typedef struct bly_filter bly_filter;
typedef struct bly_bytes { const void *ptr; size_t len; } bly_bytes;
typedef struct bly_access { const unsigned char *secret; } bly_access;
const char *bly_error(void);
int bly_open_sized(const char *path, const bly_access *how, bly_filter **out,
                   size_t size);
void bly_free(bly_filter *f);
bool bly_pair_of(const bly_filter *f, const char *name, bly_bytes *value);
void bly_has_keys(const bly_filter *f, const bly_bytes *keys, size_t n,
                  uint64_t *maybe);

int64_t time(int64_t *now);
/* The same on every machine, unlike stat(). */
typedef struct bly_statx {
    uint32_t mask, blksize;
    uint64_t attributes;
    uint32_t nlink, uid, gid;
    uint16_t mode, spare;
    uint64_t ino, size, blocks, attributes_mask;
    struct { int64_t sec; uint32_t nsec; int32_t spare; } atime, btime, ctime,
        mtime;
    uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
    uint64_t more[14];
} bly_statx;
int statx(int folder, const char *path, int flags, unsigned mask,
          bly_statx *out);
]]

local AT_FDCWD, STATX_BASIC = -100, 0x7ff
local MOST_LABELS, MOST_BYTES = 128, 256

local List = {}
List.__index = List

-- Which version of a file lies at a path: nil if there is none.
local function version(path)
    local st = ffi.new("bly_statx")
    if ffi.C.statx(AT_FDCWD, path, 0, STATX_BASIC, st) ~= 0 then
        return nil
    end
    return table.concat({ st.dev_major, st.dev_minor, tostring(st.ino),
                          tostring(st.size), tostring(st.mtime.sec),
                          st.mtime.nsec }, " ")
end

-- The 16 bytes of a key file, which may be hexadecimal digits.
local function secret_of(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("*a")
    file:close()
    local digits = text:match("^(%x+)\r?\n?$")
    if digits and #digits == 32 then
        text = digits:gsub("%x%x", function(d)
            return string.char(tonumber(d, 16))
        end)
    end
    if #text ~= 16 then
        error(path .. ": a key is 16 bytes, or 32 hexadecimal digits")
    end
    return text
end

-- Something that a list says of itself, or nil.
local function pair_of(lib, f, name)
    local value = ffi.new("bly_bytes")
    if not lib.bly_pair_of(f, name, value) then
        return nil
    end
    return ffi.string(value.ptr, value.len)
end

-- The exceptions that a list names, as a set; they lie beside it.
local function exceptions_of(path, name)
    local set = {}
    if not name then
        return set, false
    end
    if name:find("/", 1, true) then
        error(path .. ": its metadata are not those of a list")
    end
    local where = (path:match("^.*/") or "") .. name
    local file = io.open(where, "rb")
    if not file then
        error(where .. ": the exceptions of " .. path .. " are missing")
    end
    for line in file:lines() do
        set[line] = true
    end
    file:close()
    return set, true
end

-- Read and verify the list at the path; an error changes nothing.
function List:load()
    local out = ffi.new("bly_filter *[1]")
    local how = ffi.new("bly_access", { self.secret })
    if self.lib.bly_open_sized(self.path, how, out, ffi.sizeof(how)) ~= 0 then
        error(ffi.string(self.lib.bly_error()))
    end
    local f = ffi.gc(out[0], self.lib.bly_free)
    if (pair_of(self.lib, f, "list") or "domains") ~= "domains" then
        error(self.path .. ": a list of URLs; use one made by urls build --domains")
    end
    local exceptions, any = exceptions_of(self.path,
                                          pair_of(self.lib, f, "allow"))
    self.filter, self.exceptions, self.any = f, exceptions, any
    self.least = pair_of(self.lib, f, "labels") and 1 or 2
    self.exact = pair_of(self.lib, f, "exact")
end

-- A new list, if there is one: once a second is enough.
function List:refresh()
    local now = tonumber(ffi.C.time(nil))
    if now == self.looked then
        return
    end
    self.looked = now
    local is = version(self.path)
    if not is or is == self.version then
        return
    end
    self.version = is
    local ok, why = pcall(List.load, self)
    if not ok then
        self.log("bloomery: " .. tostring(why) .. "; the previous list stays in use")
    end
end

-- Is a name in wire form listed? Bytes and their number.
function List:listed_wire(wire, size)
    self:refresh()
    local text, keys = self.text, self.keys
    local starts, labels, at, len = self.starts, 0, 0, 0
    while at < size and wire[at] ~= 0 do
        local n = wire[at]
        if n > 63 or at + n >= size or labels == MOST_LABELS or
            len + n + 1 > MOST_BYTES then
            return false -- no name
        end
        if labels > 0 then
            text[len] = 46
            len = len + 1
        end
        starts[labels] = len
        labels = labels + 1
        for i = at + 1, at + n do
            local c = wire[i]
            if c >= 65 and c <= 90 then
                c = c + 32
            end
            text[len] = c
            len = len + 1
        end
        at = at + n + 1
    end
    -- The name itself in any case, then those above it.
    local n = math.max(labels - self.least + 1, math.min(labels, 1))
    n = self.exact and math.min(n, 1) or n
    if n == 0 then
        return false
    end
    for i = 0, n - 1 do
        keys[i].ptr = text + starts[i]
        keys[i].len = len - starts[i]
    end
    self.maybe[1] = 0
    self.lib.bly_has_keys(self.filter, keys, n, self.maybe)
    if self.maybe[0] == 0 and self.maybe[1] == 0 then
        return false
    end
    if self.any then
        for i = 0, self.exact and 0 or labels - 1 do
            if self.exceptions[ffi.string(text + starts[i], len - starts[i])]
            then
                return false
            end
        end
    end
    return true
end

-- Is the name that dnsdist was asked for listed?
function List:listed(dq)
    ffi.C.dnsdist_ffi_dnsquestion_get_qname_raw(dq, self.qname, self.qsize)
    return self:listed_wire(ffi.cast("const uint8_t *", self.qname[0]),
                            tonumber(self.qsize[0]))
end

-- The same for a name as text, for scripts.
function List:has(name)
    local wire = {}
    for label in name:gmatch("[^.]+") do
        wire[#wire + 1] = string.char(#label) .. label
    end
    local text = table.concat(wire) .. "\0"
    return self:listed_wire(ffi.cast("const uint8_t *", text), #text)
end

local bloomery = {}

function bloomery.open(path, options)
    options = options or {}
    local self = setmetatable({
        path = path,
        lib = ffi.load(options.library or "bloomery"),
        log = options.log or errlog or print,
        text = ffi.new("char[?]", MOST_BYTES),
        starts = ffi.new("int32_t[?]", MOST_LABELS),
        keys = ffi.new("bly_bytes[?]", MOST_LABELS),
        maybe = ffi.new("uint64_t[?]", MOST_LABELS / 64),
        qname = ffi.new("const char *[1]"),
        qsize = ffi.new("size_t[1]"),
    }, List)
    if options.key_file then
        self.secret_text = secret_of(options.key_file)
        self.secret = ffi.cast("const unsigned char *", self.secret_text)
    end
    -- Looked at before it is read: what comes in between is seen later.
    self.looked, self.version = tonumber(ffi.C.time(nil)), version(path)
    self:load()
    return self
end

return bloomery
