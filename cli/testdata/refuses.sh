# refuses.sh COMPLAINT COMMAND...: the command says the complaint on the
# standard error, nothing on the standard output, and ends with 2.
complaint=$1
shift
out=$(mktemp)
said=$("$@" 2>&1 >"$out" </dev/null)
status=$?
printed=$(cat "$out")
rm -f "$out"
echo "$said"
[ $status -eq 2 ] || { echo "it ended with $status"; exit 1; }
[ -z "$printed" ] || { echo "it printed $printed"; exit 1; }
case $said in
  *"$complaint"*) ;;
  *) echo "it does not say $complaint"; exit 1 ;;
esac
