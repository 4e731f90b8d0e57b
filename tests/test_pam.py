"""pam_bloomery.so, loaded by the real libpam and driven by pamtester.

PAM reads its configuration from /etc/pam.d. The tests put a folder of their
own there, in a mount namespace that ends with the program.
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from conftest import BUILD, PATIENCE, run

MODULE = BUILD / "pam_bloomery.so"
INSIDE = 'mount --bind "$1" /etc/pam.d && shift && exec "$@"'


def in_namespace(etc, *argv, **kw):
    return subprocess.run(["unshare", "-m", "sh", "-c", INSIDE, "sh", etc,
                           *map(str, argv)], capture_output=True, text=True,
                          timeout=PATIENCE, **kw)


def missing():
    if not MODULE.exists():
        return "pam_bloomery.so was not built: no headers of PAM"
    if not shutil.which("pamtester"):
        return "pamtester is not there"
    if os.getuid() != 0 or \
            in_namespace("/etc/pam.d", "true").returncode != 0:
        return "no mount namespace can be made here"
    return None


WHY = missing()
pytestmark = pytest.mark.skipif(WHY is not None, reason=WHY or "")


@pytest.fixture
def reachable():
    """A folder that others can enter, too: pytest closes its own to them,
    whenever another run of it begins."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bloomery-pam-"))
    os.chmod(folder, 0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def pam(reachable):
    """Change a password, as a user who types these lines: status and what was
    said. The module behind ours takes what it got and stores nothing."""
    tmp_path = reachable
    etc = tmp_path / "pam.d"
    etc.mkdir()
    words = "".join(f"leaked{i}\n" for i in range(1000))
    assert run("passwords", "build", "-q", "--words", "-p", 1e-9, "-o",
               tmp_path / "p.bly", stdin=words).status == 0
    os.chmod(tmp_path / "p.bly", 0o644)
    shutil.copy(MODULE, tmp_path / "module.so")
    os.chmod(tmp_path / "module.so", 0o755)
    before = tmp_path

    def change(*lines, options="", user="nobody", filter="p.bly",
               first=""):
        (etc / "bly-test").write_text(
            f"{first}"
            f"password requisite {tmp_path}/module.so "
            f"filter={before / filter} {options}\n"
            "password required pam_permit.so\n")
        (etc / "other").write_text("password required pam_deny.so\n")
        who = ["setpriv", "--reuid", user, "--clear-groups"] \
            if user != "root" else []
        done = in_namespace(
            etc, *who, "pamtester", "bly-test", "nobody", "chauthtok",
            input="".join(line + "\n" for line in lines))
        return done.returncode == 0, done.stdout + done.stderr
    change.path = tmp_path
    return change


def test_refused_and_taken(pam):
    done, said = pam("leaked7", "leaked7")
    assert not done and "list of leaked" in said
    assert "leaked7" not in said
    done, said = pam("unheard-of", "unheard-of")
    assert done and "leaked" not in said


def test_the_second_entry_must_agree(pam):
    done, _ = pam("unheard-of", "unheard-off")
    assert not done


def test_retry(pam):
    done, said = pam("leaked1", "leaked2", "unheard-of", "unheard-of",
                     options="retry=3")
    assert done and said.count("list of leaked") == 2
    done, said = pam("leaked1", "leaked2", "leaked3", "unheard-of",
                     options="retry=3")
    assert not done and said.count("list of leaked") == 3


def test_root_is_warned(pam):
    done, said = pam("leaked1", "leaked1", user="root")
    assert done and "Warning" in said
    done, said = pam("leaked1", "leaked1", user="root",
                     options="enforce_for_root")
    assert not done and "choose another" in said


def test_use_authtok(pam):
    """A module before ours asked for the password."""
    first = f"password requisite {pam.path}/module.so filter=" \
        f"{pam.path}/other.bly\n"
    assert run("passwords", "build", "-q", "--words", "-p", 1e-9, "-o",
               pam.path / "other.bly", stdin="other\n").status == 0
    os.chmod(pam.path / "other.bly", 0o644)
    done, said = pam("leaked1", "leaked1", options="use_authtok", first=first)
    assert not done and said.count("list of leaked") == 1
    done, said = pam("other", "other", options="use_authtok", first=first)
    assert not done
    done, said = pam("unheard", "unheard", options="use_authtok", first=first)
    assert done
    # Nobody has asked.
    done, said = pam("unheard", "unheard", options="use_authtok")
    assert not done


def spoil(path, how):
    if how == "missing":
        path.unlink()
    elif how == "damaged":
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:1000])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "open to all":
        os.chmod(path, 0o666)
    elif how == "open to a group":
        os.chmod(path, 0o664)
    elif how == "forgetful":
        # As passwords build made them until it refused to: that of another
        # kind, with the metadata of one of passwords.
        sums = "".join(hashlib.sha1(f"leaked{i}".encode()).hexdigest() + "\n" for i in range(9))
        run("build", "-q", "-k", "aging", "-n", "100", "--meta", "passwords=sha1", "-o", path,
            stdin=sums)
        os.chmod(path, 0o644)
    elif how == "somebody else's":
        os.chown(path, 12345, 12345)
    elif how == "folder":
        path.unlink()
        path.mkdir()
    elif how == "fifo":
        path.unlink()
        os.mkfifo(path)
        os.chmod(path, 0o644)
    elif how == "other":
        run("build", "-q", "-o", path, stdin="leaked7\n")
        os.chmod(path, 0o644)


@pytest.mark.parametrize("how", ["missing", "damaged", "cut", "empty",
                                 "open to all", "open to a group", "forgetful",
                                 "somebody else's", "folder",
                                 "fifo", "other"])
def test_a_filter_that_cannot_be_used(pam, how):
    """Closed, which is the default, nothing can be changed; open, everything
    can."""
    spoil(pam.path / "p.bly", how)
    for options in "", "fail=closed", "fail=closed enforce_for_root":
        done, said = pam("unheard-of", "unheard-of", options=options)
        assert not done, options
    done, said = pam("leaked7", "leaked7", options="fail=open")
    assert done, said


@pytest.mark.parametrize("options", ["retry=0", "retry=x", "fail=perhaps",
                                     "unknown", "filter=relative.bly",
                                     "key_file=/nonexistent"])
def test_options_that_nobody_can_mean(pam, options):
    done, _ = pam("unheard-of", "unheard-of", options=options)
    assert not done


def test_a_keyed_filter_and_ntlm(pam):
    key = pam.path / "key"
    key.write_bytes(bytes(range(16)))
    os.chmod(key, 0o600)
    assert run("passwords", "build", "-q", "--words", "--list", "ntlm", "-p",
               1e-9, "-K", key, "-o", pam.path / "k.bly",
               stdin="leaked7\npässwörd\n").status == 0
    os.chmod(pam.path / "k.bly", 0o644)
    with_key = f"enforce_for_root key_file={key}"
    for word in "leaked7", "pässwörd":
        done, said = pam(word, word, user="root", filter="k.bly",
                         options=with_key)
        assert not done and "list of leaked" in said
    assert pam("unheard", "unheard", user="root", filter="k.bly",
               options=with_key)[0]
    key.write_text("0001020304050607\n08090a0b0c0d0e0f\n")
    assert not pam("unheard", "unheard", user="root", filter="k.bly",
                   options=with_key)[0]
    key.write_text("000102030405060708090a0b0c0d0e0f\r\n")
    assert pam("unheard", "unheard", user="root", filter="k.bly",
               options=with_key)[0]
    # Others may read the secret; and there is none at all.
    assert not pam("unheard", "unheard", user="root", filter="k.bly")[0]
    os.chmod(key, 0o644)
    assert not pam("unheard", "unheard", user="root", filter="k.bly",
                   options=with_key)[0]


def test_long_and_empty_passwords(pam):
    for word in "x" * 500, "":
        done, said = pam(word, word)
        assert "leaked" not in said


def test_replaced_while_others_change_their_passwords(pam):
    """A new filter by rename: old or new, never an error."""
    for i in range(6):
        assert run("passwords", "build", "-q", "--words", "-p", 1e-9, "-o",
                   pam.path / "p.bly", stdin=f"leaked{i}\nalways\n").status == 0
        done, said = pam("always", "always")
        assert not done and "list of leaked" in said
        assert pam(f"leaked{i + 1}", f"leaked{i + 1}")[0]
