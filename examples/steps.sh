# What the scripts run.sh share. Each script starts with an empty folder work beside it, and writes into it.

cd "$(dirname "$0")"
rm -rf work
mkdir work

# Print a command as it is typed, and run it. Messages go to the same place as results.
step() {
  printf '$ %s\n' "$1"
  eval "$1" 2>&1
  echo
}
