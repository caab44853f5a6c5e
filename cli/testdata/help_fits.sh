# help_fits.sh WEIR: the help of every command fits 80 columns, and 40; only what
# is to be copied as it stands, which is indented in a footer, may be wider.
weir=$1
status=0
for command in "" $("$weir" --help | awk '/^Subcommands/ { on = 1; next } on && /^  [a-z]/ { print $1 }') \
    "segment list" "segment remove"; do
  for columns in 80 40; do
    # shellcheck disable=SC2086  # "segment list" is two words.
    COLUMNS=$columns "$weir" $command --help </dev/null | awk -v columns=$columns -v command="$command" '
      length > columns && !/^  (log_format|  *.*\$upstream)/ {
        print "weir " command ", " columns " columns: " $0; wide = 1
      }
      END { exit wide || NR < 5 }' || status=1
  done
done
exit $status
