# Shared by the scripts: the virtual environment, made and kept up to date without being asked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PYTHON=${PYTHON:-python3}
VENV=${VENV:-.venv}

fail() {
  echo "error: $*" >&2
  exit 1
}

# make_venv: a virtual environment in $VENV.
make_venv() {
  command -v "$PYTHON" >/dev/null || fail "there is no $PYTHON; install Python 3.11 or newer"
  "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$PYTHON" --version) is too old; Python 3.11 or newer is needed"
  if [ ! -x "$VENV/bin/python" ]; then
    if ! "$PYTHON" -m venv "$VENV"; then
      rm -rf "$VENV" # half of one would be taken for a whole one
      fail "cannot make $VENV; on Debian: apt install python3-venv"
    fi
  fi
}

# install FILE [PIP OPTION]...: install what a requirements file names, unless it is there already.
install() {
  local requirements=$1 mark
  shift
  mark="$VENV/installed-$(echo "$requirements" | tr / -)"
  if ! cmp -s "$requirements" "$mark"; then
    echo "installing what $requirements names" >&2
    "$VENV/bin/python" -m pip --quiet --disable-pip-version-check install "$@" --requirement "$requirements"
    cp "$requirements" "$mark"
  fi
}
