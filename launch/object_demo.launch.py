"""Objects taught without a camera, from pictures: handwritten digits, or video:=FOLDER.

Open http://127.0.0.1:8701/ in a browser of the same machine. Ctrl-C ends all.
"""

from launch import LaunchDescription

from semiparam_dynamics.base.nodes import launching

# Argument -> its default, and its meaning.
ARGUMENTS = {
    "video": ("digits", "folder whose subfolders have each an object's pictures"),
    "teach": ("30", "so many pictures of each object are taught by its name"),
    "model_file": ("", "file that the objects are kept in (empty: they are not kept)"),
}


def generate_launch_description() -> LaunchDescription:
    arguments = [launching.argument(name, *about) for name, about in ARGUMENTS.items()]
    return LaunchDescription([*arguments, launching.included("recognition_demo.launch.py")])
