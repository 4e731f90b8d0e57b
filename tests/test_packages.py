"""Debian's packages: what debian/ says fits the tree; in the long form they are built, looked at by lintian, and
installed, used and removed in a bare Debian.

The long form (BLY_FULL=1) wants root, debootstrap, and the mirror that this machine has its packages from; BLY_DEBS names a
folder of packages that are built already.
"""
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import BUILD, ROOT

DEBIAN = ROOT / "debian"
FULL = pytest.mark.skipif(not os.environ.get("BLY_FULL"), reason="builds packages: BLY_FULL=1")
# Nobody has asked Debian for these packages.
LINTIAN = ["--allow-root", "--suppress-tags", "initial-upload-closes-no-bugs", "--fail-on", "error,warning"]


def part(name):
    return re.search(rf"#define BLY_VERSION_{name} (\d+)", (ROOT / "include" / "bloomery.h").read_text()).group(1)


VERSION = ".".join(map(part, ("MAJOR", "MINOR", "PATCH")))
SONAME = part("MAJOR") if part("MAJOR") != "0" else f"0.{part('MINOR')}"


def packages():
    return re.findall(r"^Package: (\S+)", (DEBIAN / "control").read_text(), re.M)


def test_versions_and_names():
    assert (DEBIAN / "changelog").read_text().startswith(f"bloomery ({VERSION}-")
    assert f"libbloomery{SONAME}" in packages()
    assert f"dh_makeshlibs -plibbloomery{SONAME} -- -c4" in (DEBIAN / "rules").read_text()
    for name in packages():
        assert (DEBIAN / f"{name}.install").read_text().strip(), name
    assert {p.stem for p in DEBIAN.glob("*.install")} == set(packages())


def test_what_is_built_is_what_is_asked_for():
    """Every library that the Makefile looks for is among the build dependencies."""
    setup = (ROOT / "tools" / "setup").read_text()
    command = re.search(r'^command="\$build(.*?)"', setup, re.M | re.S).group(1).split()
    wanted = re.search(r"^Build-Depends:(.*?)^\S", (DEBIAN / "control").read_text(), re.M | re.S).group(1)
    assert not [p for p in command if p not in re.split(r"[,\s]+", wanted)]


def test_symbols():
    """What dpkg-gensymbols is told is what the library exports."""
    told = subprocess.run([ROOT / "tools" / "abi", "--symbols", ROOT / "tests" / "abi.txt"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert told == (DEBIAN / f"libbloomery{SONAME}.symbols").read_text(), "tools/abi --symbols tests/abi.txt writes it anew"
    assert " bly_new_sized@" in told and " bly_build_keys_sized@" in told


def test_what_autopkgtest_runs():
    control = (DEBIAN / "tests" / "control").read_text()
    tests = " ".join(re.findall(r"^Tests: (.*)", control, re.M)).split()
    assert sorted(tests) == sorted(p.name for p in (DEBIAN / "tests").iterdir() if p.name != "control")
    for name in tests:
        assert os.access(DEBIAN / "tests" / name, os.X_OK), name
        subprocess.run(["sh", "-n", DEBIAN / "tests" / name], check=True)
    ours = {d for d in re.findall(r"[\w.-]+", " ".join(re.findall(r"^Depends: (.*)", control, re.M))) if "bloomery" in d}
    assert ours <= set(packages())
    assert "tools/run-tests build quick" in (DEBIAN / "rules").read_text()


@pytest.fixture(scope="module")
def debs():
    given = os.environ.get("BLY_DEBS")
    if not given:
        subprocess.run(["make", "-C", ROOT, "--no-print-directory", "deb", f"B={BUILD}"], check=True)
    folder = pathlib.Path(given or BUILD / "deb")
    return {p.name.split("_")[0]: p for p in folder.glob("*.deb") if "-dbgsym_" not in p.name}


@FULL
def test_lintian(debs):
    assert set(debs) == set(packages())
    subprocess.run(["lintian", *LINTIAN, *debs.values()], check=True)


def mirror():
    """The release of this machine, and where its packages come from."""
    release = re.search(r"^VERSION_CODENAME=(\S+)", pathlib.Path("/etc/os-release").read_text(), re.M).group(1)
    policy = subprocess.run(["apt-cache", "policy", "base-files"], check=True, capture_output=True, text=True).stdout
    found = re.search(rf"^ +\d+ (\S+) {release}/main ", policy, re.M)
    if not found:
        pytest.skip("apt does not say where this Debian comes from")
    return release, found.group(1)


USE = r"""
set -eux
export DEBIAN_FRONTEND=noninteractive
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d # servers are started here, not by their packages
chmod +x /usr/sbin/policy-rc.d
apt-get -qq update
apt-get -qq install -y --no-install-recommends gcc g++ libc6-dev pkg-config sqlite3 redis-server pamtester > /dev/null
apt-get -qq install -y --no-install-recommends /debs/*.deb > /dev/null
cd /tmp
printf 'alice\nbob\n' | bloomery build -q -o f.bly
bloomery has -q f.bly alice
test -s /usr/share/man/man1/bloomery-build.1.gz
test -s /usr/share/man/man3/bly_new.3.gz
bloomery --version | grep -q vulnerabilities:
test -s /usr/share/bash-completion/completions/bloomery
python3 -c "from bloomery import Filter; f = Filter.open('f.bly'); assert 'alice' in f and 'carol' not in f"
test "$(sqlite3 -cmd ".load $(dpkg -L libsqlite3-mod-bloomery | grep sqlite.so)" :memory: "SELECT bly_has('f.bly', 'bob')")" = 1
printf '#include <bloomery.h>\nint main(void) { bly_filter *f; return bly_open("f.bly", 0, &f) || !bly_has(f, "bob", 3); }\n' > use.c
gcc use.c $(pkg-config --cflags --libs bloomery) -o use
./use
ldd ./use | grep -q libbloomery.so
printf '#include <bloomery_leveldb.h>\nint main(void) { return sizeof(int) != 4; }\n' > level.c
gcc level.c -lbloomery_leveldb -lbloomery -lleveldb -lm -o level
./level
tail -c 512 $(dpkg -L duckdb-extension-bloomery | grep duckdb_extension) | grep -q linux_
redis-server --port 0 --unixsocket /tmp/redis.sock --daemonize yes --loadmodule /usr/lib/redis/modules/bloomery.so > /dev/null
for i in 1 2 3 4 5 6 7 8 9; do redis-cli -s /tmp/redis.sock ping > /dev/null 2>&1 || sleep 1; done
redis-cli -s /tmp/redis.sock bf.add seen alice
test "$(redis-cli -s /tmp/redis.sock bf.exists seen alice)" = 1
redis-cli -s /tmp/redis.sock shutdown nosave
pg_ctlcluster 15 main start
chmod 644 f.bly
su postgres -c "psql -qc 'CREATE EXTENSION bloomery'"
test "$(su postgres -c "psql -Atc \"SELECT bly_has(bly_agg(x), 'bob') FROM (VALUES ('alice'), ('bob')) AS t(x)\"")" = t
su postgres -c "psql -qc 'DROP EXTENSION bloomery'"
pg_ctlcluster 15 main stop
echo hunter22 > leaked.txt
bloomery passwords build -q --words -o /etc/leaked.bly leaked.txt
printf 'password requisite pam_bloomery.so filter=/etc/leaked.bly enforce_for_root retry=1\npassword required pam_permit.so\n' > /etc/pam.d/use
yes unheard-of-1 | head -4 | pamtester use root chauthtok
if yes hunter22 | head -4 | pamtester use root chauthtok; then exit 1; fi
apt-get -qq purge -y $(for d in /debs/*.deb; do dpkg-deb -f $d Package; done) > /dev/null
rm /etc/pam.d/use /etc/leaked.bly
test -z "$(find / -xdev -path /proc -prune -o -path /debs -prune -o -path /tmp -prune -o \( -name '*bloomery*' -not -path '/var/*' \) -print)"
"""


@FULL
def test_in_a_bare_debian(debs, tmp_path):
    """All of them, with the servers and libraries that they are for. BLY_BARE names a bare Debian that is there already, and is
    changed."""
    if os.getuid() or not shutil.which("debootstrap"):
        pytest.skip("not root, or debootstrap is not there")
    root = pathlib.Path(os.environ.get("BLY_BARE") or tmp_path / "root")
    release, source = mirror()
    if not root.exists():
        subprocess.run(["debootstrap", "--variant=minbase", release, root, source], check=True, stdout=subprocess.DEVNULL)
    (root / "debs").mkdir(exist_ok=True)
    for deb in debs.values():
        shutil.copy(deb, root / "debs")
    (root / "use.sh").write_text(USE)
    # A space of its own for mounts: /proc is there for the servers, and gone with the test.
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c",
                           'mount -t proc proc "$0/proc" && exec chroot "$0" sh /use.sh', root],
                          check=False, capture_output=True, text=True,
                          env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
