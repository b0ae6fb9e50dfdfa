uvmsim formats; status $?
uvmsim formats events; status $?
uvmsim formats --quiet; status $?
uvmsim formats uvb --json -; status $?
