# Functions of all scripts: they print help, and make the virtual environment and keep it up to date.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PYTHON=${PYTHON:-python3}
VENV=${VENV:-.venv}

fail() {
  echo "error: $*" >&2
  exit 1
}

# help_if_asked ARGUMENT...: if one of the arguments asks for help, call the script's `usage` and end, before
# anything is installed.
help_if_asked() {
  local argument
  for argument in "$@"; do
    case $argument in -h | --help) usage; exit ;; esac
  done
}

# no_arguments ARGUMENT...: fail if there is any, because it would have no effect.
no_arguments() {
  [ $# = 0 ] || fail "$0 takes no arguments, not even $1; $0 --help explains"
}

# make_venv: make a virtual environment in $VENV, unless there is one that can install packages. Only what these scripts
# have made is ever deleted, whatever VENV names.
make_venv() {
  command -v "$PYTHON" >/dev/null || fail "there is no $PYTHON; install Python 3.11 to 3.13"
  local version
  version=$("$PYTHON" --version 2>/dev/null || true)
  [ -n "$version" ] || fail "$PYTHON does not run; let PYTHON name Python 3.11 to 3.13"
  "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$version is too old; Python 3.11 to 3.13 is needed"
  if [ -e "$VENV/pyvenv.cfg" ] && has_pip; then return; fi
  if is_ours; then
    echo "making $VENV anew: it is incomplete, or of a Python that is gone" >&2
    rm -rf "$VENV"
  elif [ -e "$VENV" ] && ! rmdir "$VENV" 2>/dev/null; then
    fail "$VENV is there and is no virtual environment with pip; let VENV name another folder, or delete it"
  fi
  mkdir -p "$VENV"
  touch "$VENV/made-by-flightchain"
  if ! "$PYTHON" -m venv "$VENV"; then
    rm -rf "$VENV" # an incomplete one would be used the next time
    fail "cannot make $VENV, as said above; on Debian: sudo apt install python3-venv; on a disk without symbolic links, such as FAT: let VENV name a folder elsewhere"
  fi
}

# is_ours: whether these scripts have made $VENV. Releases before 1.1 left no mark, but had these names for it.
is_ours() {
  [ -e "$VENV/made-by-flightchain" ] && return
  case $VENV in
  .venv | .venv-lab | */opt/flightchain/venv) compgen -G "$VENV/installed-*" >/dev/null ;;
  *) false ;;
  esac
}

# has_pip: whether Python runs in $VENV and has a whole pip, which writes its file INSTALLER last.
has_pip() {
  "$VENV/bin/python" -c '
import sys
from importlib.metadata import Distribution
sys.exit(not any(pip.read_text("INSTALLER") for pip in Distribution.discover(name="pip")))' 2>/dev/null
}

# install [PIP OPTION...] FILE...: install what those of the requirements files name that changed since they were
# installed. Every package that is fetched must have a hash in one of them.
install() {
  local argument options=() changed=()
  for argument in "$@"; do
    case $argument in
    -*) options+=("$argument") ;;
    *) cmp -s "$argument" "$(mark_of "$argument")" || changed+=("$argument") ;;
    esac
  done
  if [ ${#changed[@]} = 0 ]; then return; fi
  echo "installing the packages of ${changed[*]}" >&2
  options+=("${changed[@]/#/--requirement=}")
  install_with_uv "${options[@]}" ||
    "$VENV/bin/python" -m pip --quiet --disable-pip-version-check install --require-hashes "${options[@]}" ||
    fail "the packages could not be installed; is there a network? They exist for Python 3.11 to 3.13 on systems of 64 bits"
  for argument in "${changed[@]}"; do cp "$argument" "$(mark_of "$argument")"; done
}

# install_with_uv OPTION...: install as pip does, in a fifth of the time, where scripts/test has installed uv. It
# fails where the settings of pip name a server that uv does not know.
install_with_uv() {
  [ -x "$VENV/bin/uv" ] &&
    UV_HTTP_TIMEOUT=15 UV_DEFAULT_INDEX=${PIP_INDEX_URL:-https://pypi.org/simple} \
      "$VENV/bin/uv" pip install --quiet --python "$VENV/bin/python" --require-hashes "$@"
}

# mark_of FILE: the copy of a requirements file that is made when all it names has been installed.
mark_of() { echo "$VENV/installed-${1//\//-}"; }

# need PACKAGE WHAT COMMAND...: if none of the commands exists, install Debian's package as root, or fail.
need() {
  local package=$1 what=$2 command
  shift 2
  for command in "$@"; do
    if command -v "$command" >/dev/null; then return; fi
  done
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing $what (Debian's package $package)" >&2
    { apt-get install --yes --quiet "$package" || { apt-get update && apt-get install --yes --quiet "$package"; }; } >&2 ||
      fail "apt-get could not install $package"
  else
    fail "$what is missing; on Debian: sudo apt install $package"
  fi
}

# need_browser: a browser for tests and screenshots; tests/browser/chromium.py has the same names of programs.
need_browser() { need chromium-headless-shell "a browser to test the pages in" chromium-headless-shell chromium chromium-browser google-chrome; }

# need_database: a MariaDB for the lab. These packages have the programs and no service, so that
# nothing is started; loadtests/servers/mariadb.py has the same names of programs.
need_database() {
  need mariadb-server-core "a MariaDB to measure" mariadb-install-db
  need mariadb-client-core "what a MariaDB is set up with" my_print_defaults
}

COMETBFT_VERSION=0.38.26 # as in backend/cluster/engine.py

# need_engine: CometBFT for clusters, as the variable ENGINE; Go builds it if there is none of our version.
need_engine() {
  ENGINE=${COMETBFT:-$(command -v cometbft || echo "$HOME/go/bin/cometbft")}
  if [ "$("$ENGINE" version 2>/dev/null)" = "$COMETBFT_VERSION" ]; then return; fi
  command -v go >/dev/null ||
    fail "CometBFT $COMETBFT_VERSION is missing, and Go to build it; on Debian: apt install golang${COMETBFT:+; $COMETBFT is another version, or does not run here}"
  echo "building CometBFT $COMETBFT_VERSION" >&2
  ENGINE=$HOME/go/bin/cometbft
  GOBIN="$HOME/go/bin" go install "github.com/cometbft/cometbft/cmd/cometbft@v$COMETBFT_VERSION" ||
    fail "Go could not build CometBFT $COMETBFT_VERSION"
}
