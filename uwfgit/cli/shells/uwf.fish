# Completion of uwf for fish. In ~/.config/fish/config.fish:
#   uwf completion fish | source
function __uwf_complete
    set -l before (commandline -opc)
    set -l now (commandline -ct)
    for line in (uwf __complete $before[2..-1] "$now" 2>/dev/null)
        switch $line
            case ':file' ':dir'
                __fish_complete_path "$now"
            case '*'
                echo $line
        end
    end
end
complete -c uwf -e
complete -c uwf -k -f -a '(__uwf_complete)'
