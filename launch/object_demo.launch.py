"""Objects taught without a camera, from pictures: handwritten digits, or video:=FOLDER.

Open http://127.0.0.1:8701/ in a browser of the same machine. Ctrl-C ends all.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.substitutions import PathJoinSubstitution
from launch_ros.substitutions import FindPackageShare

# This file takes all other arguments of the one that it includes, too.
ARGUMENTS = {
    "video": ("digits", "folder whose subfolders have each an object's pictures"),
    "teach": ("30", "so many pictures of each object are taught by its name"),
    "model_file": ("", "file that the objects are kept in (empty: they are not kept)"),
}


def generate_launch_description() -> LaunchDescription:
    share = FindPackageShare("semiparam_dynamics")
    arguments = [
        DeclareLaunchArgument(name, default_value=value, description=meaning)
        for name, (value, meaning) in ARGUMENTS.items()
    ]
    demo = PathJoinSubstitution([share, "launch", "recognition_demo.launch.py"])
    return LaunchDescription([*arguments, IncludeLaunchDescription(demo)])
