! SPDX-License-Identifier: Apache-2.0
!
! A host program in Fortran whose samples are made when they are needed, with checkpoints: source PLAN FOLDER. The plan
! is that of line.mlir.
module line_points
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  use mtrun
  implicit none

  type, extends(mtrun_source) :: points
    real :: slope(2) = [2, -3]
  contains
    procedure :: read => read_points
  end type points

contains

  ! The samples whose numbers are asked for. A thread of the library calls it, ahead of the steps.
  function read_points(self, request) result(rows)
    class(points), intent(inout) :: self
    type(mtrun_request), intent(inout) :: request
    integer(c_int64_t) :: rows
    real(c_float), pointer :: x(:, :), y(:, :)
    integer(c_int64_t) :: i
    call request%field(1, x)
    call request%field(2, y)
    do i = 1, request%rows
      x(:, i) = [real(mod(request%samples(i), 10_c_int64_t)) / 10, real(request%samples(i) / 10) / 10]
      y(1, i) = dot_product(self%slope, x(:, i)) + 1
    end do
    rows = request%rows
  end function read_points

  ! Reports the last step of each 50 epochs.
  logical function report(progress)
    type(mtrun_progress), intent(in) :: progress
    if (progress%epoch_end .and. mod(progress%epoch + 1, 50_c_int64_t) == 0) &
      print "(a, i0, a, f8.6)", "epoch ", progress%epoch + 1, ": loss ", progress%values(1)
    report = .false.
  end function report
end module line_points

program source
  use mtrun
  use line_points
  implicit none
  type(mtrun_plan) :: plan
  type(mtrun_session) :: session
  type(mtrun_dataset) :: data
  type(mtrun_loop_options) :: loop
  type(mtrun_checkpoint_options) :: checkpoint
  type(mtrun_error) :: error
  type(points), target :: line
  character(256) :: path, folder

  call get_command_argument(1, path)
  call get_command_argument(2, folder)
  call plan%load(trim(path))
  call session%create(plan)
  line%samples = 100
  call data%open(plan, line)
  loop%epochs = 200
  checkpoint%folder = trim(folder)
  checkpoint%every_epochs = 100
  checkpoint%resume = "auto" ! a second run finds that all is done
  call session%fit(data, loop, checkpoint=checkpoint, progress=report)
  call session%evaluate(data)
  print "(a, f8.6)", "loss ", session%metric("loss")
  call session%load(trim(folder) // "/none", error=error) ! an error that the program handles
  print "(i0, 2a)", error%code, " ", error%message
  call data%free()
  call session%free()
  call plan%free()
end program source
